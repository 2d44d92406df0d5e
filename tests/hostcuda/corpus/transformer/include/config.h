#ifndef CONFIG_H
#define CONFIG_H
enum { TOKENS = 12, WIDTH = 16, HEADS = 2, HEAD = WIDTH / HEADS, INNER = 32 };
#endif
