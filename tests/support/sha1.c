/* sha1.c - see sha1.h (FIPS 180-4).
 */
#include "sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void add_block(uint32_t h[5], const unsigned char block[64])
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; i++) {
        const unsigned char *p = block + 4 * (i & 15);
        w[i] = i < 16 ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
                      : rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 ? b ^ c ^ d : i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t k = i < 20 ? 0x5a827999u : i < 40 ? 0x6ed9eba1u : i < 60 ? 0x8f1bbcdcu : 0xca62c1d6u;
        uint32_t t = rotate(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void ts_sha1_hex(const void *bytes, size_t len, char ret_hex[41])
{
    uint32_t h[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    size_t padded = (len + 8) / 64 * 64 + 64;
    unsigned char *all = calloc(1, padded);
    if (all == NULL) {
        abort();
    }
    if (len > 0) {
        memcpy(all, bytes, len);
    }
    all[len] = 0x80;
    for (int i = 0; i < 8; i++) {
        all[padded - 1 - (size_t)i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
    }
    for (size_t at = 0; at < padded; at += 64) {
        add_block(h, all + at);
    }
    free(all);
    for (int i = 0; i < 5; i++) {
        snprintf(ret_hex + 8 * i, 9, "%08x", (unsigned)h[i]);
    }
}
