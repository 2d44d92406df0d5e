/* plain.h - a header with nothing to translate. */
#ifndef PLAIN_H
#define PLAIN_H
enum { BLOCK = 64 };
#endif
