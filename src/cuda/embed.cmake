# embed.cmake: a file as an object of the assembler, which takes megabytes at once where an array in C++ takes minutes.
# SPDX-License-Identifier: Apache-2.0
file(WRITE ${SOURCE} "// Made from kernels.cu.\n"
"#include \"cuda/kernels.hpp\"\n"
"asm(\".section .rodata\\n\"\n"
"    \".balign 64\\n\"\n"
"    \"tutti_cuda_kernels:\\n\"\n"
"    \".incbin \\\"${IMAGE}\\\"\\n\"\n"
"    \".previous\\n\");\n"
"extern \"C\" const char tutti_cuda_kernels[] __attribute__((visibility(\"hidden\")));\n"
"namespace tutti::cuda {\n"
"const void* kernel_image() { return tutti_cuda_kernels; }\n"
"}  // namespace tutti::cuda\n")
