/* The helper: a process that renders chat templates, tries constraints and decodes images, so that neither the time nor the memory which
 * untrusted input takes can hurt the process that serves. Its program is linked in as bytes: candor_helper_image. It is
 * started with one end of a stream socket as descriptor 0 and none beyond its own program's, which it closes, and it
 * confines itself before it reads a byte: address space, no files, no core, no new privileges, no system calls beyond
 * memory, time and descriptor 0 where the kernel filters them. It ends when the other end closes, also in the middle of a
 * job, and ignores SIGINT and SIGTERM. It writes one reply once it is ready, and one to each request, in order; it holds
 * what requests put into its slots, nothing else.
 *
 * A context's keys are the template's variables. One that no template can name, "client texts": {"mark": "c", "own":
 * ["bos_token", ...]}, makes known who wrote what: all variables but those of `own` are a client's, except for well-known
 * values of a message's "role"; each stretch of the result that came from a client's strings stands between two marks. The
 * mark must occur in no string.
 *
 * Numbers are little endian. Request: candor_helper_request, then `size` bytes. Reply: candor_helper_reply, then `size`
 * bytes: the text, or the message of the error. */
#ifndef CANDOR_HELPER_H_
#define CANDOR_HELPER_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const unsigned char candor_helper_image[];
extern const unsigned char candor_helper_image_end[];

enum {
  CANDOR_HELPER_SLOTS = 8,
  CANDOR_HELPER_OUT_OF_MEMORY = 77, /* exit status: a job took more than its bytes below */
  CANDOR_HELPER_MOST_PIXELS = 64 << 20, /* of an image, checked before it is decoded */
  CANDOR_HELPER_MOST_SIDE = 65535
};
#define CANDOR_HELPER_JOB_BYTES (256u << 20)
#define CANDOR_HELPER_IMAGE_JOB_BYTES (1024u << 20)
#define CANDOR_HELPER_MOST_BYTES (80u << 20) /* of a request, an image's file too, or a reply */
#define CANDOR_HELPER_MOST_IMAGE_BYTES (8u + 3u * CANDOR_HELPER_MOST_PIXELS) /* of the reply to an image */

typedef enum candor_helper_kind {
  CANDOR_HELPER_TEMPLATE = 1,   /* bytes: the source; compiles it into the slot */
  CANDOR_HELPER_VOCABULARY = 2, /* bytes: u32 n_tokens, u32 n_ends, u32 end[n_ends], then for each token u32 size (bit 31:
                                   special) and its bytes; into the slot */
  CANDOR_HELPER_RENDER = 3,     /* slot: a template; bytes: i64 now_seconds, then the context: a JSON object */
  CANDOR_HELPER_CONSTRAINT = 4, /* slot: a vocabulary; detail: candor_grammar_kind; bytes: the source. An empty reply: it may
                                   be compiled */
  CANDOR_HELPER_IMAGE = 5       /* bytes: a file: JPEG, PNG, WebP, GIF (its first frame), BMP. The reply: u32 width, u32
                                   height, then rows of RGB8, as EXIF turns them, without transparency */
} candor_helper_kind;

typedef struct candor_helper_request {
  uint32_t size;
  uint8_t kind;
  uint8_t slot;
  uint8_t detail;
  uint8_t zero;
} candor_helper_request;

typedef struct candor_helper_reply {
  uint32_t size;
  uint8_t status;  /* candor_status */
  uint8_t is_worn; /* what this job took is not given back: better end this helper and start another one */
  uint16_t zero;
  uint32_t line; /* as in candor_error */
} candor_helper_reply;

#ifdef __cplusplus
}
#endif
#endif /* CANDOR_HELPER_H_ */
