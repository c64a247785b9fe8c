/* The bytes of the program candor_helper: see candor_helper.h. */
#include "candor_helper.h"

__asm__(
    ".section .rodata\n"
    ".global candor_helper_image\n"
    ".global candor_helper_image_end\n"
    ".balign 16\n"
    "candor_helper_image:\n"
    ".incbin \"" CANDOR_HELPER_PATH "\"\n"
    "candor_helper_image_end:\n"
    ".byte 0\n"
    ".previous\n");
