/* A stand-in for NVIDIA's management library: NVML's ABI, with values from a text file instead of a driver. */
#ifndef STANDIN_H
#define STANDIN_H

#include <stddef.h>

enum { MAX_GPUS = 16, MAX_MIG = 7 };
enum { NODE = -1, EVERY = -2 }; /* scopes of the control file besides a GPU's number */

/* nvmlReturn_t, as far as the stand-in itself gives them. */
enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    VERSION_MISMATCH = 25,
};

typedef unsigned long long u64;

/* What an nvmlDevice_t points to. `mig` is -1 for a whole GPU. */
typedef struct {
    int gpu;
    int mig;
} Device;

/* One line `SCOPE KEY VALUE` of the control file. */
typedef struct {
    int scope;
    const char *key;
    const char *value;
} Entry;

typedef struct {
    const Entry *entries;
    size_t count;
    int found; /* 0: there is no control file, which means that no driver is loaded */
} State;

/* state.c */
const State *state(void); /* re-read when the file changed; stays valid for ever */
const char *text(int scope, const char *key, const char *fallback);
u64 number(int scope, const char *key, u64 fallback);
int is_set(int scope, const char *key);
u64 counter(int scope, const char *key); /* KEY, plus what KEY.rate says: `PER_SECOND SINCE_EPOCH_S` */
double now_s(void);
double wave(int gpu, double period_s, double amplitude);
/* The n-th entry of that key in that scope itself, or NULL. */
const char *nth(int scope, const char *key, int n);

/* guard.c */
extern Device devices[MAX_GPUS];
extern Device mig_devices[MAX_GPUS][MAX_MIG];
int gpu_count(void);
int physical(unsigned index); /* the index-th GPU that is there, or -1 */
int enter(const char *function);
int enter_device(const char *function, const Device *device, int mig_allowed);
void block_for_ever(void);
extern int references;

/* device.c */
int load_of(int gpu);
u64 throttle_of(int gpu);
unsigned temperature_of(int gpu);
unsigned memory_temperature_of(int gpu);
unsigned power_mw_of(int gpu);
void memory_of(const Device *device, u64 *total, u64 *reserved, u64 *used);

#define NVML __attribute__((visibility("default"))) int
#define ENTER()                          \
    do {                                 \
        int code = enter(__func__);      \
        if (code)                        \
            return code;                 \
    } while (0)
#define ENTER_DEVICE(device, mig_allowed)                              \
    do {                                                               \
        int code = enter_device(__func__, device, mig_allowed);        \
        if (code)                                                      \
            return code;                                               \
    } while (0)
#define NEED(pointer)                \
    do {                             \
        if (!(pointer))              \
            return INVALID_ARGUMENT; \
    } while (0)

int put_text(char *buffer, unsigned size, const char *value);

#endif
