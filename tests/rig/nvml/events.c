/* Events such as Xids: lines `GPU event NUMBER TYPE DATA GI CI`, given once to every set that listens by then. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* single- and double-bit ECC, Xid, GPU unavailable, recovery action */
#define SUPPORTED (0x1 | 0x2 | 0x8 | 0x4000 | 0x8000)

typedef struct {
    u64 types[MAX_GPUS];
    u64 last[MAX_GPUS]; /* number of the newest event given, or there when the GPU was registered */
} EventSet;

typedef struct {
    const Device *device;
    u64 type, data;
    unsigned gpu_instance, compute_instance;
} EventData;

typedef struct {
    u64 number, type, data;
    int gi, ci;
} Event;

static int event(int gpu, int n, Event *found)
{
    const char *line = nth(gpu, "event", n);
    *found = (Event){0, 0, 0, -1, -1};
    if (!line)
        return 0;
    sscanf(line, "%llu %lli %llu %d %d", &found->number, (long long *)&found->type, &found->data, &found->gi,
           &found->ci);
    return 1;
}

NVML nvmlEventSetCreate(EventSet **set)
{
    ENTER();
    NEED(set);
    *set = calloc(1, sizeof **set);
    return OK;
}

NVML nvmlEventSetFree(EventSet *set)
{
    ENTER();
    NEED(set);
    free(set);
    return OK;
}

NVML nvmlDeviceGetSupportedEventTypes(const Device *device, u64 *types)
{
    ENTER_DEVICE(device, 0);
    NEED(types);
    *types = number(device->gpu, "event_types", SUPPORTED);
    return OK;
}

NVML nvmlDeviceRegisterEvents(const Device *device, u64 types, EventSet *set)
{
    ENTER_DEVICE(device, 0);
    NEED(set);
    if (types & ~number(device->gpu, "event_types", SUPPORTED))
        return NOT_SUPPORTED;
    Event found;
    for (int n = 0; !set->types[device->gpu] && event(device->gpu, n, &found); n++)
        if (found.number > set->last[device->gpu])
            set->last[device->gpu] = found.number;
    set->types[device->gpu] |= types;
    return OK;
}

/* The oldest event that this set has not been given yet. */
static int next(EventSet *set, EventData *data)
{
    int best = -1;
    Event oldest = {0}, found;
    for (int gpu = 0; gpu < MAX_GPUS; gpu++)
        for (int n = 0; set->types[gpu] && event(gpu, n, &found); n++) {
            if (found.number <= set->last[gpu] || !(found.type & set->types[gpu]))
                continue;
            if (best < 0 || found.number < oldest.number) {
                best = gpu;
                oldest = found;
            }
        }
    if (best < 0)
        return 0;
    set->last[best] = oldest.number;
    *data = (EventData){&devices[best], oldest.type, oldest.data, (unsigned)oldest.gi, (unsigned)oldest.ci};
    return 1;
}

NVML nvmlEventSetWait_v2(EventSet *set, EventData *data, unsigned timeout_ms)
{
    NEED(set && data);
    double until = now_s() + timeout_ms / 1000.0;
    for (;;) {
        ENTER(); /* a driver that hangs does so while one waits, too */
        if (next(set, data))
            return OK;
        double left = until - now_s();
        if (left <= 0)
            return TIMEOUT;
        struct timespec wait = {0, (long)((left < 0.02 ? left : 0.02) * 1e9)};
        nanosleep(&wait, NULL);
    }
}
