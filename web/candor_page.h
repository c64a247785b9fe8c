/* The files of the page as web/build.mjs made them, compressed by gzip: linked in by CMakeLists.txt. */
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

extern const unsigned char candor_page_html[], candor_page_html_end[];
extern const unsigned char candor_page_js[], candor_page_js_end[];
extern const unsigned char candor_page_css[], candor_page_css_end[];
extern const unsigned char candor_page_math[], candor_page_math_end[];
extern const unsigned char candor_page_pdf[], candor_page_pdf_end[];

#ifdef __cplusplus
}
#endif
