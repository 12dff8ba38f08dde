# horovod_one_bad_argument.py: one rank passes what is no array: it raises, and the others are told
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
tutti.all_reduce("text" if tutti.rank() == 1 else 1.0)

# raises on rank 1: tutti.InvalidArgument: all_reduce: str is not an array; texts and other objects go by broadcast_object, …
# raises on rank 0: tutti.Aborted: …rank 1…str is not an array…
