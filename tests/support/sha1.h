/* sha1.h - the digest by which Redis knows scripts, computed apart from the library's.
 */
#ifndef TS_SHA1_H
#define TS_SHA1_H

#include <stddef.h>

/* Writes 40 lower-case hex digits and a NUL. */
void ts_sha1_hex(const void *bytes, size_t len, char ret_hex[41]);

#endif
