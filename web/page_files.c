/* The bytes of web/dist: see candor_page.h. */
#include "candor_page.h"

#define EMBED(name, file)                      \
  __asm__(                                     \
      ".section .rodata\n"                     \
      ".global " #name "\n"                    \
      ".global " #name "_end\n" #name ":\n"    \
      ".incbin \"" CANDOR_PAGE_FOLDER file "\"\n" #name "_end:\n" \
      ".byte 0\n"                              \
      ".previous\n")

EMBED(candor_page_html, "/index.html.gz");
EMBED(candor_page_js, "/app.js.gz");
EMBED(candor_page_css, "/app.css.gz");
EMBED(candor_page_math, "/math.js.gz");
EMBED(candor_page_pdf, "/pdf.js.gz");
