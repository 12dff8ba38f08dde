# one_bit.py: stands between a host and the switch for a while, and changes one bit of what a rank says, with the checksum mended.
# SPDX-License-Identifier: Apache-2.0
"""one_bit.py OUTER_PORT INNER_PORT SSH_PORT SEED SECONDS

Runs in the namespace of the switch. Frames go from one port to the other through this process; of the TCP segments that carry data, are from
the host, and are not ssh's, the one that SEED chooses loses a bit of its payload. Checksums are computed anew for all: the kernel leaves those of
its own cables open. What is changed is something that only the ranks can find."""

import random
import select
import socket
import struct
import sys
import time

IPV4, TCP = 0x0800, 6
PACKET_OUTGOING = 4  # what we sent ourselves


def ones_complement_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def tcp_of(frame):
    """Where the TCP header begins, where its payload does, and where that ends; None for anything else."""
    if len(frame) < 34 or struct.unpack_from("!H", frame, 12)[0] != IPV4 or frame[23] != TCP:
        return None
    begin = 14 + (frame[14] & 15) * 4
    end = 14 + struct.unpack_from("!H", frame, 16)[0]
    return begin, begin + (frame[begin + 12] >> 4) * 4, end


def mend(frame, begin, end):
    frame[begin + 16:begin + 18] = b"\0\0"
    pseudo = bytes(frame[26:34]) + struct.pack("!BBH", 0, TCP, end - begin)
    frame[begin + 16:begin + 18] = struct.pack("!H", 0xFFFF ^ ones_complement_sum(pseudo + bytes(frame[begin:end])))


def main():
    ports = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2)]
    for port, name in zip(ports, sys.argv[1:3]):
        port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
        port.bind((name, 3))
    ssh_port, chance = int(sys.argv[3]), random.Random(int(sys.argv[4]))
    left_alone = chance.randrange(40)
    until = time.monotonic() + float(sys.argv[5])
    while (now := time.monotonic()) < until:
        for source in select.select(ports, [], [], until - now)[0]:
            data, where = source.recvfrom(1 << 17)
            if where[2] == PACKET_OUTGOING:
                continue
            frame = bytearray(data)
            if found := tcp_of(frame):
                begin, payload, end = found
                is_ssh = ssh_port in struct.unpack_from("!HH", frame, begin)
                if source is ports[0] and not is_ssh and end > payload:
                    if left_alone == 0:
                        frame[chance.randrange(payload, end)] ^= 1 << chance.randrange(8)
                        print("one bit was changed", flush=True)
                    left_alone -= 1
                mend(frame, begin, end)
            try:
                (ports[1] if source is ports[0] else ports[0]).send(frame)
            except OSError:
                pass  # longer than the other port takes: as lost on a cable


main()
