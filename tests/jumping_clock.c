/* For LD_PRELOAD: a wall clock that is set while the program runs; the monotonic clock goes on as it is.
 * JUMPS="2:86400,5.5:-172800" sets it forward by a day after 2 s of the process, and back by two after 5.5 s. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

typedef int (*clock_gettime_t)(clockid_t, struct timespec *);

static clock_gettime_t real(void) {
  static clock_gettime_t found;
  if (!found) found = (clock_gettime_t)dlsym(RTLD_NEXT, "clock_gettime");
  return found;
}

static double elapsed(void) {
  static double began = -1;
  struct timespec now;
  real()(CLOCK_MONOTONIC, &now);
  double seconds = now.tv_sec + now.tv_nsec / 1e9;
  if (began < 0) began = seconds;
  return seconds - began;
}

__attribute__((constructor)) static void begin(void) { elapsed(); }

static long shift(void) {
  double now = elapsed();
  long sum = 0;
  const char *at = getenv("JUMPS");
  while (at && *at) {
    char *end;
    double when = strtod(at, &end);
    if (*end != ':') break;
    long by = strtol(end + 1, &end, 10);
    if (now >= when) sum += by;
    at = *end == ',' ? end + 1 : NULL;
  }
  return sum;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  int code = real()(clock, at);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
  return code;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  int code = clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return code;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
