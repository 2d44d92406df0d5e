/* ==== >>cpu-host =================================================================================================
   Thread pool. Tasks are large and handed out one by one under a mutex; results do not depend on who runs which.
   tests: tests/test_context.c */
typedef struct ampi_workspace { /* of one thread */
    float a[AMPI_MC * AMPI_KC], b[AMPI_KC * AMPI_NC], c[AMPI_MC * AMPI_LDC],
        row[4 * AMPI_KC > AMPI_NC ? 4 * AMPI_KC : AMPI_NC]; /* 2.2 MB */
    double part[AMP_PARTS], lane[AMP_LANES], column[AMP_COLUMN_LANES * AMPI_NC];
} ampi_workspace;

#define AMPI_CPU_KIND "cpu: " /* then the path and the threads */
typedef struct ampi_cpu {
    const ampi_kernels *k; /* &kernels */
    ampi_kernels kernels;
    amp_allocator mem;
    int32_t threads, rooms;
    uint32_t taken;       /* large blocks so far: see ampi_cpu_take */
    char name[48];        /* what amp_ctx_name gives */
    ampi_workspace *work; /* `rooms` of them, one per thread; touched when they are needed */
    void (*fn)(void *arg, size_t task, ampi_workspace *w);
    void *arg;
    size_t next, total;
#ifndef AMP_NO_THREADS
    pthread_mutex_t lock; /* of everything below, of next, and of merging results */
    pthread_cond_t start, done;
    pthread_t worker[255];
    int32_t workers; /* that live; 0: all is done by the calling thread */
    int32_t sharing; /* 1: several threads are at the tasks */
    int32_t started, quit;
    uint32_t running, round;
    uint64_t process; /* whose they are: fork() takes only the calling thread along */
#endif
} ampi_cpu;
static ampi_cpu *ampi_cpu_of(amp_ctx *ctx) { return (ampi_cpu *)amp_ctx_self(ctx); }
#ifndef AMP_NO_THREADS
static uint64_t ampi_this_process(void) {
#  if defined(_WIN32) || defined(__wasi__)
    return 0; /* no fork() */
#  else
    return (uint64_t)getpid();
#  endif
}
static int ampi_has_workers(ampi_cpu *c) {
    if (c->workers && c->process != ampi_this_process()) c->workers = 0;
    return c->workers != 0;
}
/* Of tasks. A verb that needs no worker locks nothing: after fork() the lock may be held by one that is not there. */
static void ampi_lock(ampi_cpu *c) {
    if (c->sharing) (void)pthread_mutex_lock(&c->lock);
}
static void ampi_unlock(ampi_cpu *c) {
    if (c->sharing) (void)pthread_mutex_unlock(&c->lock);
}
static void ampi_run_tasks(ampi_cpu *c, ampi_workspace *w) { /* with the lock held */
    while (c->next < c->total) {
        size_t task = c->next++;
        (void)pthread_mutex_unlock(&c->lock);
        (c->fn)(c->arg, task, w);
        (void)pthread_mutex_lock(&c->lock);
    }
}
/* Signals are for the program's threads: a worker takes only those that a fault of its own raises. */
#  if !defined(_WIN32) && !defined(__wasi__)
#    if defined(SIG_SETMASK) /* hidden under -std=c99, too */
#      define AMPI_SETMASK SIG_SETMASK
#    elif defined(__mips__) || defined(__alpha__)
#      define AMPI_SETMASK 3
#    else
#      define AMPI_SETMASK 2 /* Linux, but for those two */
#    endif
typedef sigset_t ampi_signals;
static ampi_signals ampi_signals_block(void) {
    static const int faults[5] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    ampi_signals all, old;
    int i;
    (void)(sigfillset)(&all);
    for (i = 0; i < 5; i++)
        (void)(sigdelset)(&all, faults[i]);
    (void)pthread_sigmask(AMPI_SETMASK, &all, &old);
    return old;
}
static void ampi_signals_restore(ampi_signals old) { (void)pthread_sigmask(AMPI_SETMASK, &old, NULL); }
#  else
typedef int ampi_signals;
static ampi_signals ampi_signals_block(void) { return 0; }
static void ampi_signals_restore(ampi_signals old) { (void)old; }
#  endif
/* Until a word of the pool changes. Sleeping and waking take 30 to 100 us, longer than most of what is waited for: a
   verb's last task, the next verb of a training step. So a waiting thread first looks at the word, for at most about
   50 us, and returns whether that was enough. */
#  define AMPI_LOOKS 1000
#  if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#    define AMPI_PAUSE() __asm__ volatile("pause")
#  elif defined(__GNUC__) && defined(__aarch64__)
#    define AMPI_PAUSE() __asm__ volatile("isb") /* "yield" takes no time */
#  else
#    define AMPI_PAUSE() (void)0
#  endif
static int ampi_looked(ampi_cpu *c, const uint32_t *word) {
    uint32_t before = *word;
    int i;
    (void)pthread_mutex_unlock(&c->lock);
    for (i = 0; i < AMPI_LOOKS && AMPI_READ(word) == before; i++)
        AMPI_PAUSE();
    (void)pthread_mutex_lock(&c->lock);
    return *word != before;
}
static void *ampi_worker(void *arg) {
    ampi_cpu *c = (ampi_cpu *)arg;
    ampi_workspace *w;
    uint32_t seen = 0, misses = 0; /* times in a row that looking did not help: the program computes between verbs */
    (void)ampi_fpu_enter();
    (void)pthread_mutex_lock(&c->lock);
    w = &c->work[++c->started];
    for (;;) {
        int looks = misses < 2 || misses % 16 == 0;
        if (c->round != seen || (looks && ampi_looked(c, &c->round)))
            misses = 0;
        else
            misses++;
        while (c->round == seen)
            (void)pthread_cond_wait(&c->start, &c->lock);
        if (c->quit) break;
        seen = c->round;
        AMPI_WRITE(&c->running, c->running + 1); /* who comes when all tasks are taken is not waited for */
        ampi_run_tasks(c, w);
        AMPI_WRITE(&c->running, c->running - 1);
        if (c->running == 0) (void)pthread_cond_signal(&c->done);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}
/* work: about how many elements there are in all. Waking threads costs as much as some ten thousand of them. */
static void ampi_parallel(
    ampi_cpu *c, size_t tasks, size_t work, void (*fn)(void *, size_t, ampi_workspace *), void *arg) {
    size_t i;
    int before;
    if (tasks <= 1 || work < 65536 || !ampi_has_workers(c)) {
        for (i = 0; i < tasks; i++)
            (fn)(arg, i, c->work);
        return;
    }
    before = ampi_hold();
    (void)pthread_mutex_lock(&c->lock);
    c->sharing = 1;
    c->fn = fn;
    c->arg = arg;
    c->next = 0;
    c->total = tasks;
    AMPI_WRITE(&c->round, c->round + 1);
    (void)pthread_cond_broadcast(&c->start);
    ampi_run_tasks(c, c->work);
    if (c->running) (void)ampi_looked(c, &c->running);
    while (c->running)
        (void)pthread_cond_wait(&c->done, &c->lock);
    c->sharing = 0;
    (void)pthread_mutex_unlock(&c->lock);
    ampi_release(before);
}
static void ampi_pool_end(ampi_cpu *c) {
    (void)pthread_cond_destroy(&c->start);
    (void)pthread_cond_destroy(&c->done);
    (void)pthread_mutex_destroy(&c->lock);
}
static void ampi_pool_stop(ampi_cpu *c) {
    int i, before;
    if (!ampi_has_workers(c)) return;
    before = ampi_hold();
    (void)pthread_mutex_lock(&c->lock);
    c->quit = 1;
    AMPI_WRITE(&c->round, c->round + 1);
    (void)pthread_cond_broadcast(&c->start);
    (void)pthread_mutex_unlock(&c->lock);
    for (i = 0; i < c->workers; i++)
        (void)pthread_join(c->worker[i], NULL);
    ampi_release(before);
    ampi_pool_end(c);
    c->workers = 0;
}
/* A worker for each room but the first, or as many as the system gives. */
static void ampi_pool_start(ampi_cpu *c) {
    ampi_signals old;
    if (c->rooms == 1 || pthread_mutex_init(&c->lock, NULL) != 0) return;
    if (pthread_cond_init(&c->start, NULL) != 0) {
        (void)pthread_mutex_destroy(&c->lock);
        return;
    }
    if (pthread_cond_init(&c->done, NULL) != 0) {
        (void)pthread_cond_destroy(&c->start);
        (void)pthread_mutex_destroy(&c->lock);
        return;
    }
    c->process = ampi_this_process();
    old = ampi_signals_block();         /* workers begin with the mask of who starts them */
    (void)pthread_mutex_lock(&c->lock); /* workers read how many they are when they are told to go */
    while (c->workers < c->rooms - 1 && pthread_create(&c->worker[c->workers], NULL, ampi_worker, c) == 0)
        c->workers++;
    (void)pthread_mutex_unlock(&c->lock);
    ampi_signals_restore(old);
    c->threads = c->workers + 1;
    if (c->workers == 0) ampi_pool_end(c);
}
#else
static void ampi_pool_start(ampi_cpu *c) { (void)c; }
static void ampi_pool_stop(ampi_cpu *c) { (void)c; }
static void ampi_lock(ampi_cpu *c) { (void)c; }
static void ampi_unlock(ampi_cpu *c) { (void)c; }
static void ampi_parallel(
    ampi_cpu *c, size_t tasks, size_t work, void (*fn)(void *, size_t, ampi_workspace *), void *arg) {
    size_t i;
    (void)work;
    for (i = 0; i < tasks; i++)
        (fn)(arg, i, c->work);
}
#endif

/* ampi_parallel, for a backend function's last line. */
static amp_status ampi_run(
    ampi_cpu *c, size_t tasks, double work, void (*fn)(void *, size_t, ampi_workspace *), void *arg) {
    ampi_parallel(c, tasks, work < 1e9 ? (size_t)work : (size_t)1000000000, fn, arg);
    return AMP_OK;
}
static size_t ampi_chunks(size_t n) { return (n - 1) / AMP_CHUNK + 1; }

