/* The library itself: start and end, versions, error texts, and handles of devices. */
#include "standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NVML nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    references++; /* so that enter() does not complain */
    pthread_mutex_unlock(&lock);
    int code = enter(__func__);
    if (!code)
        code = state()->found ? (int)number(NODE, "init_error", OK) : DRIVER_NOT_LOADED;
    if (code) {
        pthread_mutex_lock(&lock);
        references--;
        pthread_mutex_unlock(&lock);
    }
    return code;
}

NVML nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

NVML nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

NVML nvmlShutdown(void)
{
    ENTER();
    pthread_mutex_lock(&lock);
    references--;
    pthread_mutex_unlock(&lock);
    return OK;
}

/* NVML's own words; nvidia-smi prints some of them. */
static const char *const words[] = {
    "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
    "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
    "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
    "Corrupted infoROM", "GPU is lost", "GPU requires reset", "The operating system has blocked the request.",
    "Driver/library version mismatch", "In use by another client", "Insufficient Memory", "No data",
    "The requested vgpu operation is not available on target device because ECC is enabled",
    "Insufficient Resources", "Requested frequency is not supported", "Argument version mismatch",
    "Requested functionality has been deprecated", "The system is not ready for the request",
    "No GPUs were found", "Invalid State", "Reset type not supported",
};

__attribute__((visibility("default"))) const char *nvmlErrorString(int code)
{
    int known = code >= 0 && (size_t)code < sizeof words / sizeof *words;
    return known ? words[code] : "Unknown Error";
}

NVML nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    ENTER();
    return put_text(version, length, text(NODE, "driver", "580.95.05"));
}

NVML nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    char own[80];
    snprintf(own, sizeof own, "13.%.70s", text(NODE, "driver", "580.95.05"));
    return put_text(version, length, own); /* works without a driver */
}

NVML nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    ENTER();
    NEED(version);
    *version = (int)number(NODE, "cuda", 13000);
    return OK;
}

NVML nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    ENTER();
    char path[64], buffer[1024] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NOT_FOUND;
    char *got = fgets(buffer, sizeof buffer, file);
    fclose(file);
    buffer[strcspn(buffer, "\n")] = 0;
    return got ? put_text(name, length, buffer) : NOT_FOUND;
}

NVML nvmlDeviceGetCount_v2(unsigned *count)
{
    ENTER();
    NEED(count);
    *count = (unsigned)gpu_count();
    return OK;
}

/* A GPU that is lost is still counted; only its handle is refused, as the real library does. */
static int handle(const char *function, int gpu, Device **device)
{
    if (!device || gpu < 0)
        return INVALID_ARGUMENT;
    int code = enter_device(function, &devices[gpu], 0);
    if (!code)
        *device = &devices[gpu];
    return code;
}

NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device)
{
    ENTER();
    return handle(__func__, physical(index), device);
}

NVML nvmlDeviceGetHandleByUUID(const char *uuid, Device **device)
{
    ENTER();
    NEED(uuid);
    for (unsigned index = 0; physical(index) >= 0; index++) {
        char fallback[64];
        snprintf(fallback, sizeof fallback, "GPU-00000000-0000-4000-8000-%012d", physical(index));
        if (!strcmp(uuid, text(physical(index), "uuid", fallback)))
            return handle(__func__, physical(index), device);
    }
    return NOT_FOUND;
}

static int same_bus(const char *one, const char *other)
{
    unsigned a[4] = {0}, b[4] = {0};
    return sscanf(one, "%x:%x:%x.%x", &a[0], &a[1], &a[2], &a[3]) == 4
        && sscanf(other, "%x:%x:%x.%x", &b[0], &b[1], &b[2], &b[3]) == 4 && !memcmp(a, b, sizeof a);
}

const char *bus_id_of(int gpu);

NVML nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device **device)
{
    ENTER();
    NEED(bus_id);
    for (unsigned index = 0; physical(index) >= 0; index++)
        if (same_bus(bus_id, bus_id_of(physical(index))))
            return handle(__func__, physical(index), device);
    return NOT_FOUND;
}
