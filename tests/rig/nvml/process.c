/* Processes on a GPU, in the three layouts that drivers have had. */
#include "standin.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    unsigned pid;
    u64 bytes;
} ProcessV1;

/* Version 3 has the same layout; both are for drivers from 510 on. */
typedef struct {
    unsigned pid;
    u64 bytes;
    unsigned gpu_instance, compute_instance;
} ProcessV2;

/* The n-th process of that kind, from a line `PID BYTES KIND GI CI`. */
static int process(const Device *device, const char *kind, int n, ProcessV2 *found)
{
    const char *line, *part = device->mig < 0 ? NULL : nth(device->gpu, "mig_instance", device->mig);
    char own_kind[16];
    int gi = -1, ci = -1, own_gi = -1;
    if (part)
        sscanf(part, "%d", &own_gi);
    for (int i = 0; (line = nth(device->gpu, "process", i)); i++) {
        gi = ci = -1;
        if (sscanf(line, "%u %llu %15s %d %d", &found->pid, &found->bytes, own_kind, &gi, &ci) < 3)
            continue;
        if (strcmp(own_kind, kind) || (part && gi != own_gi) || n-- > 0)
            continue;
        found->gpu_instance = (unsigned)gi;
        found->compute_instance = (unsigned)ci;
        return 1;
    }
    return 0;
}

static int list(const Device *device, const char *kind, unsigned *count, void *buffer, size_t size)
{
    NEED(count);
    unsigned room = buffer ? *count : 0, there = 0;
    ProcessV2 found;
    memset(&found, 0, sizeof found);
    for (; process(device, kind, (int)there, &found); there++)
        /* The old layout is the beginning of the new one. */
        if (there < room)
            memcpy((char *)buffer + there * size, &found, size);
    *count = there;
    return there > room ? INSUFFICIENT_SIZE : OK;
}

#define LIST(function, kind, layout)                                           \
    NVML function(const Device *device, unsigned *count, layout *processes)    \
    {                                                                          \
        ENTER_DEVICE(device, 1);                                               \
        return list(device, kind, count, processes, sizeof(layout));           \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, "compute", ProcessV1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute", ProcessV2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute", ProcessV2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, "graphics", ProcessV1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics", ProcessV2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics", ProcessV2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, "mps", ProcessV1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps", ProcessV2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps", ProcessV2)
