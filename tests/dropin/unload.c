/* unload.c - loads a shared object with amp's implementation in it, trains there, and unloads it, 100 times:
   usage: unload OBJECT    OBJECT exports void first(void), a main of another name. Linux. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int count_threads(void) {
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d) (void)closedir(d);
    return n - 2; /* . and .. */
}
/* A thread that was joined may be listed a little longer. */
static int threads(int want) {
    const struct timespec ms = {0, 1000000};
    int i, n = count_threads();
    for (i = 0; i < 2000 && n != want; i++) {
        (void)nanosleep(&ms, NULL);
        n = count_threads();
    }
    return n;
}
/* Lines of this process's map, and those that name the object. */
static int mapped(const char *object, int *of_object) {
    char line[4096];
    FILE *f = fopen("/proc/self/maps", "r");
    int n = 0;
    *of_object = 0;
    for (; f && fgets(line, sizeof line, f); n++)
        *of_object += strstr(line, object) != NULL;
    if (f) (void)fclose(f);
    return n;
}
int main(int argc, char **argv) {
    int i, now, left, before = 0, alone = count_threads();
    if (argc != 2) return 2;
    for (i = 0; i < 100; i++) {
        void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        void (*first)(void) = NULL;
        if (!object) return puts(dlerror()), 1;
        *(void **)&first = dlsym(object, "first");
        if (!first) return puts("there is no first()"), 1;
        first();
        if (threads(alone) != alone) return printf("round %d: more than %d threads\n", i, alone), 1;
        if (dlclose(object)) return puts(dlerror()), 1;
        now = mapped(argv[1], &left);
        if (left) return printf("round %d: %d areas of the object stay mapped\n", i, left), 1;
        if (i == 10) before = now; /* the allocator and the cache of stacks have what they want */
        if (i > 10 && now > before + 2) return printf("round %d: %d areas, and %d before\n", i, now, before), 1;
    }
    puts("unloaded");
    return 0;
}
