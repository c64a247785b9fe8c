/* The helper's program, linked as the one that carries it. */
#include <signal.h>

void candor_helper_run(void);

int main(void) {
  signal(SIGPIPE, SIG_IGN);  /* as Rust's own start does */
  candor_helper_run();
  return 0;
}
