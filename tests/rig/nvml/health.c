/* Errors of a GPU's memory and links: ECC, remapped rows, NVLink, PCIe, fabric. */
#include "standin.h"

#include <stdio.h>
#include <string.h>

NVML nvmlDeviceGetEccMode(const Device *device, unsigned *is, unsigned *will_be)
{
    ENTER_DEVICE(device, 0);
    NEED(is && will_be);
    *is = (unsigned)number(device->gpu, "ecc", 1);
    *will_be = (unsigned)number(device->gpu, "ecc_pending", *is);
    return OK;
}

/* type: 0 corrected, 1 uncorrected; span: 0 volatile, 1 aggregate. */
u64 ecc_of(int gpu, unsigned type, unsigned span)
{
    static const char *const keys[2][2] = {{"ecc_corrected", "ecc_corrected_ever"},
                                           {"ecc_uncorrected", "ecc_uncorrected_ever"}};
    u64 now = counter(gpu, keys[type][0]);
    return span == 0 ? now : is_set(gpu, keys[type][1]) ? counter(gpu, keys[type][1]) : now;
}

NVML nvmlDeviceGetTotalEccErrors(const Device *device, unsigned type, unsigned span, u64 *count)
{
    ENTER_DEVICE(device, 0);
    NEED(count && type < 2 && span < 2);
    if (!number(device->gpu, "ecc", 1))
        return NOT_SUPPORTED;
    *count = ecc_of(device->gpu, type, span);
    return OK;
}

/* Everything is in the device memory (2), but for what `ecc_sram` says is in the SRAM (7). */
NVML nvmlDeviceGetMemoryErrorCounter(const Device *device, unsigned type, unsigned span, unsigned place, u64 *count)
{
    ENTER_DEVICE(device, 0);
    NEED(count && type < 2 && span < 2);
    if (!number(device->gpu, "ecc", 1) || (place != 2 && place != 7))
        return NOT_SUPPORTED;
    u64 sram = type == 1 ? counter(device->gpu, "ecc_sram") : 0, all = ecc_of(device->gpu, type, span);
    *count = place == 7 ? sram : all > sram ? all - sram : 0;
    return OK;
}

NVML nvmlDeviceGetRemappedRows(const Device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                               unsigned *failed)
{
    ENTER_DEVICE(device, 0);
    NEED(corrected && uncorrected && pending && failed);
    int gpu = device->gpu;
    if (number(gpu, "mig", 0))
        return NOT_SUPPORTED;
    *corrected = (unsigned)number(gpu, "remap_corrected", 0);
    *uncorrected = (unsigned)number(gpu, "remap_uncorrected", 0);
    *pending = (unsigned)number(gpu, "remap_pending", 0);
    *failed = (unsigned)number(gpu, "remap_failed", 0);
    return OK;
}

NVML nvmlDeviceGetNvLinkState(const Device *device, unsigned link, unsigned *active)
{
    ENTER_DEVICE(device, 0);
    NEED(active);
    u64 links = number(device->gpu, "nvlinks", 18);
    if (link >= 36)
        return INVALID_ARGUMENT;
    if (link >= links)
        return NOT_SUPPORTED;
    *active = !((number(device->gpu, "nvlinks_down", 0) >> link) & 1);
    return OK;
}

NVML nvmlDeviceGetNvLinkVersion(const Device *device, unsigned link, unsigned *version)
{
    ENTER_DEVICE(device, 0);
    NEED(version);
    if (link >= number(device->gpu, "nvlinks", 18))
        return NOT_SUPPORTED;
    *version = (unsigned)number(device->gpu, "nvlink_version", 6);
    return OK;
}

/* 0 replay, 1 recovery, 2 CRC of a flit, 3 CRC of data */
static const char *const link_errors[] = {"nvlink_replay", "nvlink_recovery", "nvlink_crc_flit", "nvlink_crc_data"};

NVML nvmlDeviceGetNvLinkErrorCounter(const Device *device, unsigned link, unsigned which, u64 *count)
{
    ENTER_DEVICE(device, 0);
    NEED(count);
    if (link >= number(device->gpu, "nvlinks", 18) || which > 3)
        return NOT_SUPPORTED;
    /* What the control file says happened on the GPU's first link. */
    *count = link == 0 ? counter(device->gpu, link_errors[which]) : 0;
    return OK;
}

#define PCIE(function, key, fallback)                               \
    NVML function(const Device *device, unsigned *value)            \
    {                                                               \
        ENTER_DEVICE(device, 0);                                    \
        NEED(value);                                                \
        *value = (unsigned)number(device->gpu, key, (u64)fallback); \
        return OK;                                                  \
    }

#define MAX_GEN number(device->gpu, "pcie_max_gen", 5)
#define MAX_WIDTH number(device->gpu, "pcie_max_width", 16)
PCIE(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_max_gen", 5)
PCIE(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gpu_max_gen", MAX_GEN)
PCIE(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen", MAX_GEN)
PCIE(nvmlDeviceGetMaxPcieLinkWidth, "pcie_max_width", 16)
PCIE(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", MAX_WIDTH)

NVML nvmlDeviceGetPcieReplayCounter(const Device *device, unsigned *count)
{
    ENTER_DEVICE(device, 0);
    NEED(count);
    *count = (unsigned)counter(device->gpu, "pcie_replay");
    return OK;
}

/* which: 0 sent, 1 received; KB/s */
NVML nvmlDeviceGetPcieThroughput(const Device *device, unsigned which, unsigned *kb_per_s)
{
    ENTER_DEVICE(device, 0);
    NEED(kb_per_s && which < 2);
    int load = load_of(device->gpu);
    double usual = load ? load * 9000.0 + wave(device->gpu, 5 + which, load * 900.0) : 0;
    *kb_per_s = (unsigned)number(device->gpu, which ? "pcie_rx_kb_s" : "pcie_tx_kb_s", (u64)usual);
    return OK;
}

typedef struct {
    unsigned char cluster[16];
    unsigned status, clique, state;
} FabricV1;

typedef struct {
    unsigned version;
    FabricV1 v1;
    unsigned health_mask;
    unsigned char health_summary; /* from version 3 on */
} FabricV3;

static void fabric(int gpu, FabricV1 *info)
{
    memset(info->cluster, 0, sizeof info->cluster);
    info->status = (unsigned)number(gpu, "fabric_status", OK);
    info->clique = (unsigned)number(gpu, "fabric_clique", 0);
    info->state = (unsigned)number(gpu, "fabric_state", 3); /* 3: completed */
}

NVML nvmlDeviceGetGpuFabricInfo(const Device *device, FabricV1 *info)
{
    ENTER_DEVICE(device, 0);
    NEED(info);
    fabric(device->gpu, info);
    return OK;
}

NVML nvmlDeviceGetGpuFabricInfoV(const Device *device, FabricV3 *info)
{
    ENTER_DEVICE(device, 0);
    NEED(info);
    if (info->version != 0x02000024 && info->version != 0x03000028)
        return VERSION_MISMATCH;
    fabric(device->gpu, &info->v1);
    /* Bandwidth, route recovery, routes and access time-outs: not degraded; configuration: fine. */
    info->health_mask = (unsigned)number(device->gpu, "fabric_health", 0x1aa);
    if (info->version == 0x03000028)
        info->health_summary = (unsigned char)number(device->gpu, "fabric_summary", 1);
    return OK;
}
