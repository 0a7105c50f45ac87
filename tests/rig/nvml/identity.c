/* Who a GPU is: names, numbers, places, modes. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define H100 "NVIDIA H100 80GB HBM3"

/* The places of a p5.48xlarge, then made-up ones. */
static const char *const buses[MAX_GPUS] = {
    "00000000:53:00.0", "00000000:64:00.0", "00000000:75:00.0", "00000000:86:00.0",
    "00000000:97:00.0", "00000000:A8:00.0", "00000000:B9:00.0", "00000000:CA:00.0",
    "00000000:D1:00.0", "00000000:D2:00.0", "00000000:D3:00.0", "00000000:D4:00.0",
    "00000000:D5:00.0", "00000000:D6:00.0", "00000000:D7:00.0", "00000000:D8:00.0",
};

const char *bus_id_of(int gpu)
{
    return text(gpu, "bus_id", buses[gpu]);
}

/* `GI CI MEM_MIB PROFILE UUID` of one MIG instance. */
static int mig_part(const Device *device, int *gi, int *ci, u64 *mib, char profile[32], char uuid[64])
{
    const char *line = nth(device->gpu, "mig_instance", device->mig);
    return line && sscanf(line, "%d %d %llu %31s %63s", gi, ci, mib, profile, uuid) == 5;
}

NVML nvmlDeviceGetName(const Device *device, char *name, unsigned length)
{
    ENTER_DEVICE(device, 1);
    const char *whole = text(device->gpu, "name", H100);
    int gi, ci;
    u64 mib;
    char profile[32], uuid[64], part[128];
    if (device->mig < 0)
        return put_text(name, length, whole);
    if (!mig_part(device, &gi, &ci, &mib, profile, uuid))
        return NOT_FOUND;
    snprintf(part, sizeof part, "%.80s MIG %s", whole, profile);
    return put_text(name, length, part);
}

NVML nvmlDeviceGetUUID(const Device *device, char *buffer, unsigned length)
{
    ENTER_DEVICE(device, 1);
    int gi, ci;
    u64 mib;
    char profile[32], uuid[64];
    if (device->mig >= 0)
        return mig_part(device, &gi, &ci, &mib, profile, uuid) ? put_text(buffer, length, uuid) : NOT_FOUND;
    snprintf(uuid, sizeof uuid, "GPU-00000000-0000-4000-8000-%012d", device->gpu);
    return put_text(buffer, length, text(device->gpu, "uuid", uuid));
}

NVML nvmlDeviceGetSerial(const Device *device, char *serial, unsigned length)
{
    ENTER_DEVICE(device, 0);
    char fallback[32];
    snprintf(fallback, sizeof fallback, "16501230%05d", device->gpu);
    return put_text(serial, length, text(device->gpu, "serial", fallback));
}

NVML nvmlDeviceGetVbiosVersion(const Device *device, char *version, unsigned length)
{
    ENTER_DEVICE(device, 0);
    return put_text(version, length, text(device->gpu, "vbios", "96.00.99.00.01"));
}

NVML nvmlDeviceGetGspFirmwareVersion(const Device *device, char *version)
{
    ENTER_DEVICE(device, 0);
    return put_text(version, 64, text(NODE, "driver", "580.95.05"));
}

NVML nvmlDeviceGetIndex(const Device *device, unsigned *index)
{
    ENTER_DEVICE(device, 0);
    NEED(index);
    for (*index = 0; physical(*index) >= 0; (*index)++)
        if (physical(*index) == device->gpu)
            return OK;
    return NOT_FOUND;
}

typedef struct {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;

NVML nvmlDeviceGetPciInfo_v3(const Device *device, PciInfo *info)
{
    ENTER_DEVICE(device, 0);
    NEED(info);
    memset(info, 0, sizeof *info);
    const char *place = bus_id_of(device->gpu);
    sscanf(place, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    /* The old field has room for four digits of the domain only. */
    snprintf(info->legacy_bus_id, sizeof info->legacy_bus_id, "%04X:%02X:%02X.0", info->domain & 0xffff,
             info->bus & 0xff, info->device & 0xff);
    snprintf(info->bus_id, sizeof info->bus_id, "%s", place);
    info->device_id = (unsigned)number(device->gpu, "pci_device_id", 0x233010DE);
    info->subsystem_id = (unsigned)number(device->gpu, "pci_subsystem_id", 0x16C110DE);
    return OK;
}

/* Getters of one number that is what the control file says. */
#define PLAIN(function, key, fallback)                              \
    NVML function(const Device *device, unsigned *value)            \
    {                                                               \
        ENTER_DEVICE(device, 0);                                    \
        NEED(value);                                                \
        *value = (unsigned)number(device->gpu, key, (u64)fallback); \
        return OK;                                                  \
    }

PLAIN(nvmlDeviceGetMinorNumber, "minor", device->gpu)
PLAIN(nvmlDeviceGetBrand, "brand", 2)
PLAIN(nvmlDeviceGetArchitecture, "architecture", 9)
PLAIN(nvmlDeviceGetPersistenceMode, "persistence", 1)
PLAIN(nvmlDeviceGetComputeMode, "compute_mode", 0)
PLAIN(nvmlDeviceGetDisplayMode, "display_mode", 0)
PLAIN(nvmlDeviceGetDisplayActive, "display_active", 0)
PLAIN(nvmlDeviceGetPerformanceState, "pstate", 0)
PLAIN(nvmlDeviceGetPowerState, "pstate", 0)
PLAIN(nvmlDeviceGetModuleId, "module", device->gpu + 1)
PLAIN(nvmlDeviceGetNumaNodeId, "numa", device->gpu / 4)

NVML nvmlDeviceGetCudaComputeCapability(const Device *device, int *major, int *minor)
{
    ENTER_DEVICE(device, 0);
    NEED(major && minor);
    *major = (int)number(device->gpu, "cc_major", 9);
    *minor = (int)number(device->gpu, "cc_minor", 0);
    return OK;
}

NVML nvmlDeviceGetFanSpeed(const Device *device, unsigned *percent)
{
    ENTER_DEVICE(device, 0);
    NEED(percent);
    if (!is_set(device->gpu, "fan"))
        return NOT_SUPPORTED; /* server boards have no fan of their own */
    *percent = (unsigned)number(device->gpu, "fan", 0);
    return OK;
}

NVML nvmlDeviceGetMigMode(const Device *device, unsigned *is, unsigned *will_be)
{
    ENTER_DEVICE(device, 0);
    NEED(is && will_be);
    *is = (unsigned)number(device->gpu, "mig", 0);
    *will_be = (unsigned)number(device->gpu, "mig_pending", *is);
    return OK;
}

NVML nvmlDeviceGetMaxMigDeviceCount(const Device *device, unsigned *count)
{
    ENTER_DEVICE(device, 0);
    NEED(count);
    *count = (unsigned)number(device->gpu, "mig_max", MAX_MIG);
    return OK;
}

NVML nvmlDeviceGetMigDeviceHandleByIndex(const Device *device, unsigned index, Device **part)
{
    ENTER_DEVICE(device, 0);
    NEED(part);
    int there = number(device->gpu, "mig", 0) && index < MAX_MIG && nth(device->gpu, "mig_instance", (int)index);
    if (there)
        *part = &mig_devices[device->gpu][index];
    return there ? OK : NOT_FOUND;
}

NVML nvmlDeviceIsMigDeviceHandle(const Device *device, unsigned *is)
{
    ENTER_DEVICE(device, 1);
    NEED(is);
    *is = device->mig >= 0;
    return OK;
}

NVML nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const Device *part, Device **device)
{
    ENTER_DEVICE(part, 1);
    NEED(device && part->mig >= 0);
    *device = &devices[part->gpu];
    return OK;
}

/* The two numbers of a MIG instance; a whole GPU has none. */
static int instance(const Device *device, unsigned *gpu_instance, unsigned *compute_instance)
{
    int gi, ci;
    u64 mib;
    char profile[32], uuid[64];
    if (device->mig < 0)
        return INVALID_ARGUMENT;
    if (!mig_part(device, &gi, &ci, &mib, profile, uuid))
        return NOT_FOUND;
    *gpu_instance = (unsigned)gi;
    *compute_instance = (unsigned)ci;
    return OK;
}

NVML nvmlDeviceGetGpuInstanceId(const Device *device, unsigned *id)
{
    unsigned other;
    ENTER_DEVICE(device, 1);
    NEED(id);
    return instance(device, id, &other);
}

NVML nvmlDeviceGetComputeInstanceId(const Device *device, unsigned *id)
{
    unsigned other;
    ENTER_DEVICE(device, 1);
    NEED(id);
    return instance(device, &other, id);
}
