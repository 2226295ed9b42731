/* The whole C interface of the core. Plain C without macros: nvcc, g++ and cffi read this file as it is.
 *
 * Every function returns an atos_status; after one that is not ATOS_OK, atos_message() says what happened, in this
 * thread. A device is an integer: ATOS_CPU, or the driver's index of a GPU.
 */

enum { ATOS_ABI_VERSION = 21 };

enum { ATOS_CPU = -1 };

typedef enum atos_status {
  ATOS_OK = 0,
  ATOS_INVALID = 1,     /* an argument makes no sense */
  ATOS_NO_DEVICE = 2,   /* there is no such device, or no driver */
  ATOS_NO_MEMORY = 3,   /* the device, or the host, has too little memory */
  ATOS_DRIVER = 4,      /* the driver refused, or a kernel failed */
  ATOS_TOO_MANY = 5,    /* more workers asked for than can be resident */
  ATOS_QUEUE_FULL = 6,  /* more unfinished tasks than the capacity; see atos_stats.lost */
  ATOS_TASK_FAILED = 7, /* a check inside a task failed; see atos_stats.failure */
  ATOS_FAULT = 8,       /* a kernel broke the device's context: nothing there can be used any more */
  ATOS_STOPPED = 9,     /* the launch was stopped; what is unfinished is in the queue */
  ATOS_STUCK = 10,      /* the workers of the launch were asked to stop and still run */
  ATOS_BUSY = 11,       /* workers of an earlier launch that was stopped still use the queue, or hold the device */
  ATOS_HELD = 12,       /* another thread uses the queue, launches as a rule; nothing was done: try again */
  ATOS_CLOSED = 13,     /* the inbox takes no more items: it was closed, or its launch has ended */
  ATOS_REPLACED = 14,   /* another queue has taken its place (atos_queue_convert); nothing was done: use that one */
  ATOS_GONE = 15,       /* another process of the group is gone, or this one has left it */
  ATOS_NOT_BEGUN = 16   /* the launch was asked to stop, and waits for the GPU, which others hold; it will run no task */
} atos_status;

enum { ATOS_STOP_CALLED = 4 };

typedef enum atos_worker_kind { ATOS_THREAD = 0, ATOS_WARP = 1, ATOS_CTA = 2 } atos_worker_kind;

/* Reductions over the threads of a worker: `op` of atos_reduce_i64() and the others. */
typedef enum atos_reduction { ATOS_SUM = 0, ATOS_MIN = 1, ATOS_MAX = 2 } atos_reduction;

enum {
  ATOS_MAX_ARGUMENT_WORDS = 256,
  ATOS_MAX_VALUE_WORDS = 8,
  ATOS_MAX_KINDS = 8,
  ATOS_MAX_RECEIVERS = 4,
  ATOS_RECEIVER_WORDS = 13,
  ATOS_MAX_POOLS = 8,
  ATOS_MAX_DEVICE_WORDS = 16,
  ATOS_MAX_STREAMS = 32
};

typedef struct atos_device_info {
  char name[128];
  int32_t compute_major;
  int32_t compute_minor;
  int32_t multiprocessor_count; /* multiprocessors, or CPU cores */
  int32_t driver_version;       /* 1000 x major + 10 x minor; 0 for the CPU */
  int32_t max_threads_per_block;
  int64_t shared_bytes_per_block; /* the most a block may ask for */
  uint64_t total_bytes;
  uint64_t free_bytes;
} atos_device_info;

/* What a task compiled for the CPU sees of its worker: pushes are stored by the compiled code itself, and only a full
 * buffer costs a call. In a queue with buckets each push is a call of `push`. */
typedef struct atos_cpu_worker {
  void *buffer;     /* items pushed and not yet handed to the queue */
  int64_t count;    /* how many are in it */
  int64_t capacity; /* how many fit: whoever finds count == capacity calls flush before storing another */
  void (*flush)(struct atos_cpu_worker *worker); /* empties the buffer and sets count to 0 */
  void *scratch;
  int64_t scratch_bytes;
  int64_t index;   /* of this worker, among those of the launch or, without `persistent`, of the round */
  int64_t workers; /* how many these are */
  /* The region of a place in the task that asks for this many bytes of scratch: the same one whenever that place is met.
   * Their sum, each in multiples of 16, is at most atos_launch.sized_scratch. */
  void *(*sized_scratch)(struct atos_cpu_worker *worker, uint64_t place, int64_t bytes);
  void (*push)(struct atos_cpu_worker *worker, const void *item, double priority);
  void (*stop)(struct atos_cpu_worker *worker); /* ends the launch; what is unfinished stays in the queue */
  int64_t round;                                /* of a launch with barriers: the number of the current round */
  int64_t mode;                                 /* what the function between rounds has set for it */
  int64_t next_mode;                            /* what it sets for the next one */
  int64_t pending;  /* in the function between rounds: items that wait for the next one, before those that it pushes */
  uint64_t *ran_by; /* tasks run of each kind, which the compiled code counts if there are several */
} atos_cpu_worker;

typedef struct atos_queue atos_queue;
typedef struct atos_program atos_program;
typedef struct atos_inbox atos_inbox;

/* How things stand at one moment of a run. */
typedef struct atos_sample {
  uint64_t nanoseconds; /* of a clock of the device */
  uint64_t ran;         /* tasks run so far, in this launch */
  uint64_t tail;        /* tasks that went into the queue so far, ever */
  uint64_t claimed;     /* tasks that workers took or wait for so far, ever; a discrete launch's latest kernel alone counts */
} atos_sample;

/* Another queue that the tasks push into, an argument of ATOS_RECEIVER_WORDS words that the core fills in. */
typedef struct atos_receiver {
  atos_queue *queue;
  uint32_t word; /* which one of the arguments' words is the first */
} atos_receiver;

/* A word of the arguments that differs by device in a launch over several, such as the address of a device's copy of an array.
 */
typedef struct atos_device_word {
  uint32_t word; /* which one; it has what the first device gets */
  uint64_t step; /* from a device to the next */
} atos_device_word;

typedef struct atos_launch {
  int32_t worker; /* atos_worker_kind */
  int32_t persistent;
  int32_t barrier;
  uint32_t fetch;         /* items a worker takes at once, at most */
  uint32_t blocks;        /* 0: as many as are resident at once */
  uint32_t threads;       /* threads of a block */
  uint32_t scratch;       /* bytes of scratch of a worker */
  uint32_t sized_scratch; /* and of the scratch that the task sizes itself, all of whose regions are aligned to 16 */
  uint32_t nested;        /* 1 if the task has a workload */
  uint32_t value_words;   /* values that the workload hands to the iterations */
  uint32_t idle;          /* 1 if the program has an idle function */
  uint32_t buckets;       /* 1 if the program is for a queue with buckets */
  uint32_t newest;        /* 1 if workers take the newest items first; not with buckets, barriers or several devices */
  uint32_t each_round;    /* 1 if it has a function between rounds; only with barrier */
  uint32_t kinds;         /* kinds of tasks that the program counts, or 0 */
  /* Switches for comparisons; 0 in each of them for what is best as a rule. */
  uint32_t local_items; /* 1 plus the pushes that a worker keeps, to run them itself, at most */
  uint32_t push_buffer; /* 1 plus the items that a worker's push buffer, or with `newest` its stack, holds */
  uint32_t unshared;    /* 1: workers neither split long items nor donate to idle workers what they might keep */
  uint32_t argument_words;
  const uint64_t *arguments;
  uint32_t streams;     /* kernels of a discrete launch without barriers that may run side by side; 0: as the core finds best */
  void *stream;         /* a CUstream; null: the legacy default stream */
  atos_sample *samples; /* memory of the device for a trace of the run, or null */
  uint32_t max_samples;
  uint32_t sample_interval; /* nanoseconds between samples, at least */
  double timeout;           /* seconds after which the workers are stopped; 0: none */
  /* or null: asked some 50 times a second; what is not 0 stops the workers. With `progress` it is told how things stand, or
   * null where that is not known at the moment. */
  int32_t (*poll_callback)(const atos_sample *now);
  int32_t progress;  /* 1: tasks are counted while they run */
  atos_inbox *inbox; /* for items that the host sends while the workers run, or null; of a relaxed, persistent launch */
  uint32_t num_receivers;
  atos_receiver receivers[ATOS_MAX_RECEIVERS];
  /* Pools among the arguments: for each, which of the words gets the address of the word whose bit ATOS_STOP_CALLED a task
   * sets, if the pool is full, to end the launch as by worker.stop(). */
  uint32_t num_pools;
  uint32_t pool_words[ATOS_MAX_POOLS];
  uint32_t num_device_words; /* 0 on one device */
  atos_device_word device_words[ATOS_MAX_DEVICE_WORDS];
} atos_launch;

/* The first check that failed in a launch of a task that was compiled with checks. */
typedef struct atos_failure {
  uint64_t failed; /* 1 if there is one */
  int64_t site;    /* which check, as the compiler of the task numbers them */
  int64_t value;   /* such as an index */
  int64_t bound;
  int64_t array;    /* which of the arguments' arrays */
  uint64_t in_item; /* 1 if a task failed on `item`, 0 if it was an idle function */
  uint64_t item[4];
} atos_failure;

/* How workers shared their work: on a GPU of a program whose workers count them alone, otherwise 0. */
typedef struct atos_sharing {
  uint64_t local_items;    /* pushes that their worker ran itself, without the queue */
  uint64_t items_donated;  /* pushes that a worker might have kept as well, and gave to idle ones */
  uint64_t items_split;    /* long items whose chunks all workers could run */
  uint64_t chunks_donated; /* chunks that another worker ran than the one that had the item */
} atos_sharing;

typedef struct atos_stats {
  uint64_t tasks_run;
  uint64_t tasks_pushed;
  uint64_t pending;         /* left in the queue; 0 also if workers are left, or where no launch came to use it */
  uint64_t lost;            /* pushed and dropped, since neither the queue nor its reserve had room */
  uint64_t grown;           /* times that the queue grew */
  uint64_t rounds;          /* with barriers levels, each once; otherwise kernels launched */
  uint64_t stopped;         /* 1 if a task ended the launch by worker.stop(): what is pending is unfinished */
  uint64_t samples;         /* taken; those beyond max_samples are not kept */
  uint64_t overhead_bytes;  /* of the device's memory, held by the queue and the trace beside the ring's slots */
  double milliseconds;      /* from the first kernel's start to the last one's end */
  double copy_milliseconds; /* of them, what the host took to copy counters, and the queue where it grew */
  uint32_t blocks;
  uint32_t threads;
  uint32_t workers;
  atos_failure failure;
  uint64_t tasks_run_by[ATOS_MAX_KINDS]; /* of each kind, with several kinds */
  atos_sharing sharing;
  uint64_t full_receiver; /* with ATOS_QUEUE_FULL: 1 plus the number of the receiver that is full, or 0 */
} atos_stats;

/* How a queue stands between launches. */
typedef struct atos_queue_state {
  uint64_t pending;
  uint64_t level;        /* how many of them, from the oldest on, are left of a level that a stop interrupted */
  uint64_t tasks_run;    /* by all launches so far */
  uint64_t tasks_pushed; /* by those tasks */
} atos_queue_state;

int32_t atos_abi_version(void);
const char *atos_message(void);

/* devices */
atos_status atos_device_count(int32_t *count); /* GPUs; 0 with a message that says why there is none */
atos_status atos_device_query(int32_t device, atos_device_info *info);

/* memory: pointers of the host and of any GPU may be mixed in a copy */
atos_status atos_allocate(int32_t device, uint64_t bytes, int32_t cleared, void **pointer); /* zeros, or anything */
atos_status atos_release(int32_t device, void *pointer);
/* Addresses for `*bytes`, or fewer if there are no more, but for `least`; *bytes becomes how many. Memory comes where they are
 * written, also by tasks; where a GPU cannot do that, there are `least`. */
atos_status atos_reserve(int32_t device, uint64_t *bytes, uint64_t least, void **pointer);
atos_status atos_release_reserved(int32_t device, void *pointer, uint64_t bytes, uint64_t least);
atos_status atos_release_memory(void); /* to the drivers: all that is kept and in no use */
atos_status atos_copy(int32_t device, void *to, const void *from, uint64_t bytes);
atos_status atos_fill(int32_t device, void *to, const void *element, uint32_t element_bytes, uint64_t count);
atos_status atos_pointer_device(const void *pointer, int32_t *device); /* where a pointer lives */
/* Lets each of these GPUs reach the memory that this core has allocated, and will allocate, on the others. */
atos_status atos_connect(uint32_t count, const int32_t *devices);
/* Zeroed memory in one range of addresses over several GPUs, which all of them reach: device k has the bytes from borders[k] to
 * borders[k + 1], as far as its granules of some MiB allow; borders[count] are the bytes in all. */
atos_status atos_allocate_over(uint32_t count, const int32_t *devices, const uint64_t *borders, void **pointer);
void atos_release_over(void *pointer);
atos_status atos_stream_wait(int32_t device, void *stream); /* until what is in a CUstream has ended; null: the legacy one */

/* arrays for other libraries, by DLPack: memory with the shape of a C-contiguous array */
typedef struct atos_dlpack {
  void *data;
  int32_t device_type; /* these four as DLPack numbers them */
  int32_t device_id;
  int32_t type_code;
  int32_t type_bits;
  int32_t ndim;
  const int64_t *shape;
  int32_t versioned; /* a DLManagedTensorVersioned rather than a DLManagedTensor */
  uint64_t flags;    /* of the versioned one: 1 read-only, 2 copied */
  void *owner;       /* a PyObject, of which one reference is taken over */
} atos_dlpack;

atos_status atos_dlpack_make(const atos_dlpack *given, void **managed);
void atos_dlpack_dispose(void *capsule); /* the destructor of the PyCapsule that it is handed over in */

/* The queue: FIFO as far as concurrency allows; item_bytes is 4, 8, 16 or 32. One thread at a time uses it: others wait for 20
 * ms, a launch until it is stopped, and are told ATOS_HELD then, so that callers can look after signals. */
atos_status atos_queue_create(int32_t device, uint64_t capacity, uint32_t item_bytes, atos_queue **queue);
void atos_queue_destroy(atos_queue *queue); /* what workers that are stuck use is kept */
void atos_queue_capacity(atos_queue *queue, uint64_t *capacity, uint64_t *limit);
atos_status atos_queue_push(atos_queue *queue, const void *items, uint64_t count);
/* items of 4 or 8 bytes that lie in the memory of the queue's device, and are there already */
atos_status atos_queue_push_device(atos_queue *queue, const void *items, uint64_t count);
/* items of 4 or 8 bytes: whole numbers from `first` on, which a GPU makes by itself */
atos_status atos_queue_push_range(atos_queue *queue, uint64_t first, uint64_t count);
/* Gives an empty queue buckets for priorities: `buckets` of them, a power of two, of which each is `delta` wide; 0: the width
 * adapts while workers run. */
atos_status atos_queue_set_buckets(atos_queue *queue, uint32_t buckets, double delta);
/* the same as atos_queue_push for a queue with buckets: each item has a priority; the lowest goes first */
atos_status atos_queue_push_prioritized(atos_queue *queue, const void *items, const double *priorities, uint64_t count);
/* the priorities of the items that atos_queue_read returns: those of a queue with buckets as far as single precision holds them
 */
atos_status atos_queue_read_priorities(atos_queue *queue, double *priorities, uint64_t capacity);
atos_status atos_queue_pending(atos_queue *queue, uint64_t *count);
/* the oldest items, left in place, at most `capacity` of them, and how the queue stands at that moment */
atos_status atos_queue_read(atos_queue *queue, void *items, uint64_t capacity, atos_queue_state *state);
/* puts an empty queue in the state that was read elsewhere, with all of its items; what exceeds the capacity is kept too */
atos_status atos_queue_restore(atos_queue *queue, const void *items, const atos_queue_state *state);
atos_status atos_queue_clear(atos_queue *queue);
atos_status atos_queue_resize(atos_queue *queue, uint64_t capacity);
/* How far the queue may grow by itself; 0: as far as half of the free memory allows. At first it is its capacity. */
atos_status atos_queue_limit(atos_queue *queue, uint64_t limit);

/* Makes a queue of items of another size or with other kinds, which takes the place of `queue` with all that is in it. The last
 * byte of an item is its kind: `kinds` has the new one by the old one, 256 in all, and that of an item without kind first. If
 * an item that is waiting would get ATOS_NO_KIND, *successor is null, and nothing is done. */
enum { ATOS_NO_KIND = 255 };
atos_status atos_queue_convert(atos_queue *queue, uint32_t item_bytes, const uint8_t *kinds, atos_queue **successor);

/* programs: a task linked into the worker loops, as a cubin for a GPU or as native code for the CPU */
atos_status atos_program_load(int32_t device, const void *cubin, const char *symbol, atos_program **program);
atos_status atos_program_native(uint64_t run, uint64_t idle, uint64_t each_round, int32_t checked, atos_program **program);
void atos_program_unload(atos_program *program);

/* Called by native code with checks, where one fails; the task returns then. */
void atos_cpu_fail(int64_t site, int64_t value, int64_t bound, int64_t array);

/* The functions that native code for workers of several threads calls, by their names; the last name is null. */
typedef struct atos_named_function {
  const char *name;
  void *address;
} atos_named_function;
const atos_named_function *atos_cpu_team(void);

/* An inbox hands items of the host to the workers of one launch while they run. That launch does not end before the inbox
 * is closed and all of its items have run. If it ends otherwise, what no worker has taken is in the queue. Any thread may use
 * an inbox. On a GPU its launch runs in a stream of its own, after what is in the one given. */
atos_status atos_inbox_create(int32_t device, uint32_t item_bytes, atos_inbox **inbox);
void atos_inbox_destroy(atos_inbox *inbox);      /* not during its launch */
atos_status atos_inbox_begun(atos_inbox *inbox); /* waits for 20 ms: ATOS_HELD if its launch does not have the queue yet */
/* Puts as many items into the inbox as it has room for and says how many; ATOS_HELD if for 20 ms there is room for none. */
atos_status atos_inbox_push(atos_inbox *inbox, const void *items, uint64_t count, uint64_t *pushed);
atos_status atos_inbox_close(atos_inbox *inbox); /* no more items will come */
uint64_t atos_inbox_waiting(atos_inbox *inbox);  /* items that no worker has taken yet */
void atos_inbox_stop(atos_inbox *inbox);         /* its launch is stopped, as by its timeout */

/* Runs the queue's tasks until all are done, or one of them stops the launch. The program must have been made for the queue's
 * item size and for the worker, persistent and barrier of `launch`, and whether it has an inbox. After ATOS_QUEUE_FULL,
 * ATOS_TASK_FAILED and ATOS_STOPPED, pending tasks are still in the queue. After ATOS_STUCK and ATOS_NOT_BEGUN, the program,
 * the inbox and whatever the arguments point to must live as long as the process. */
atos_status atos_queue_launch(atos_queue *queue, atos_program *program, const atos_launch *launch, atos_stats *stats);

/* Several processes of one host, of which each has one device of a launch, by its number. They meet by sockets, one to each of
 * the others, which keep the borders of messages (SOCK_SEQPACKET) and are the group's from then on. A process that is gone,
 * however it ended, has hung up: then every call is told ATOS_GONE. All processes make the same calls in the same order. */
enum { ATOS_GATHER_BYTES = 4096 };
typedef struct atos_group atos_group;
atos_status atos_group_create(uint32_t count, uint32_t own, const int32_t *sockets, atos_group **group);
void atos_group_destroy(atos_group *group);
void atos_group_leave(atos_group *group); /* hangs up; a forked child, which is no member, does that too */
/* Each hands out `bytes` bytes, the same number of at most ATOS_GATHER_BYTES; `all` gets those of all, by number. ATOS_HELD if
 * they have not come for 20 ms: call again with the same. */
atos_status atos_group_gather(atos_group *group, const void *own, uint64_t bytes, void *all);
int32_t atos_group_has_left(atos_group *group, uint32_t number); /* whether it is known to be gone */

/* A queue on a CPU device, whose memory is in a range of zeros that other processes have mapped too: `memory` in this one. */
atos_status atos_queue_create_shared(void *memory, uint64_t bytes, uint64_t capacity, uint32_t item_bytes, atos_queue **queue);

/* The same with a file descriptor of each, or -1. `files` gets those of the others, for the caller to close. */
atos_status atos_group_gather_files(atos_group *group, const void *own, uint64_t bytes, void *all, int32_t file,
                                    int32_t *files);

/* A range of addresses for memory that processes with a GPU each have in common. Parts of it, in multiples of
 * ATOS_SHARED_GRANULE bytes, get memory: one process creates a part on its GPU, and the others attach its file descriptor. */
enum { ATOS_SHARED_GRANULE = 1 << 21 };
typedef struct atos_shared atos_shared;
atos_status atos_shared_reserve(int32_t device, uint64_t bytes, atos_shared **shared, void **begin);
void atos_shared_release(atos_shared *shared); /* other processes that have its memory keep it */
atos_status atos_shared_create(atos_shared *shared, uint64_t at, uint64_t bytes, int32_t *file); /* zeros; close the file */
uint64_t atos_shared_created(const atos_shared *shared); /* bytes of the parts that were created here */
atos_status atos_shared_attach(atos_shared *shared, uint64_t at, uint64_t bytes, int32_t file);
/* A queue on a GPU whose memory is in such a range, which may be released before the queue is destroyed, but not before its
 * last use. Others attach it in launches. */
atos_status atos_queue_create_in(atos_shared *shared, uint64_t capacity, uint32_t item_bytes, atos_queue **queue);

/* A group, and where in this process the memory of the queue of each begins; on GPUs also the ranges that it is in, or null. */
typedef struct atos_processes {
  atos_group *group;
  void *const *memory;
  atos_shared *const *shared;
} atos_processes;

/* The queues of several devices, one each. What a task pushes goes into the queue of the device that owns the item: the number
 * of the queue is the key of the item, an unsigned integer that it begins with, divided by `chunk`, and at most count - 1. */
typedef struct atos_peers {
  uint32_t count;
  uint32_t key_bytes; /* 4 or 8 */
  uint64_t chunk;
  atos_queue *const *queues;       /* of each device, by its number; with processes that of this one alone */
  atos_program *const *programs;   /* of the same task, one for each of these queues */
  const atos_processes *processes; /* or null: all devices are in this process */
} atos_peers;

/* The same for several devices, until nothing is left on any of them. `stats` are of each device, by its number. The launch is
 * persistent, on CPU devices, which share the cores, or on GPUs that are connected, or have a process each, and whose programs
 * are linked for several GPUs; `blocks` are for each of them. With barriers the rounds are those of all devices, and counted in
 * the statistics of the first. With processes all of them make this call with the same options, and get the same statistics;
 * after ATOS_GONE, and ATOS_STUCK or ATOS_NOT_BEGUN in any of them, their queues are of no use. */
atos_status atos_peers_launch(const atos_peers *peers, const atos_launch *launch, atos_stats *stats);
