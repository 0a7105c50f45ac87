/* What a GPU does just now: use, memory, heat, power, clocks. Values that nobody set drift with time. */
#include "standin.h"

#include <stdio.h>
#include <string.h>

#define MIB 1048576ull

int load_of(int gpu)
{
    u64 load = number(gpu, "load", 0);
    return load > 100 ? 100 : (int)load;
}

static unsigned between(double value, double low, double high)
{
    return (unsigned)(value < low ? low : value > high ? high : value);
}

u64 throttle_of(int gpu)
{
    int load = load_of(gpu);
    return number(gpu, "throttle", load == 0 ? 0x1 : load > 90 ? 0x4 : 0);
}

unsigned temperature_of(int gpu)
{
    double value = 31.5 + gpu % 4 + load_of(gpu) * 0.33 + wave(gpu, 40, 1.4);
    return (unsigned)number(gpu, "temp", between(value, 0, 120));
}

unsigned memory_temperature_of(int gpu)
{
    return (unsigned)number(gpu, "mem_temp", temperature_of(gpu) + 8);
}

static u64 limit_mw(int gpu)
{
    return number(gpu, "power_limit_w", 700) * 1000;
}

unsigned power_mw_of(int gpu)
{
    double idle = (double)limit_mw(gpu) * 0.1, load = load_of(gpu);
    double value = idle + (double)limit_mw(gpu) * 0.86 * load / 100 + wave(gpu, 7, 900 + load * 80);
    return is_set(gpu, "power_w") ? (unsigned)(number(gpu, "power_w", 0) * 1000) : between(value, 0, 3e6);
}

typedef struct {
    unsigned gpu, memory;
} Utilization;

NVML nvmlDeviceGetUtilizationRates(const Device *device, Utilization *rates)
{
    ENTER_DEVICE(device, 0);
    NEED(rates);
    int gpu = device->gpu, load = load_of(gpu);
    if (number(gpu, "mig", 0))
        return NOT_SUPPORTED;
    rates->gpu = (unsigned)number(gpu, "util", load ? between(load + wave(gpu, 11, 2.4), 0, 100) : 0);
    rates->memory = (unsigned)number(gpu, "mem_util", load ? between(load * 0.4 + wave(gpu, 13, 3), 0, 100) : 0);
    return OK;
}

/* Bytes that the listed processes hold; those of unknown size count nothing. */
static u64 held(int gpu)
{
    u64 sum = 0, bytes;
    const char *line;
    for (int n = 0; (line = nth(gpu, "process", n)); n++)
        if (sscanf(line, "%*u %llu", &bytes) == 1 && bytes != ~0ull)
            sum += bytes;
    return sum;
}

void memory_of(const Device *device, u64 *total, u64 *reserved, u64 *used)
{
    int gpu = device->gpu;
    const char *part = device->mig < 0 ? NULL : nth(gpu, "mig_instance", device->mig);
    if (part) {
        *reserved = *used = 0;
        if (sscanf(part, "%*d %*d %llu", total) != 1)
            *total = 0;
        *total *= MIB;
        return;
    }
    *total = number(gpu, "mem_total_mib", 81559) * MIB;
    *reserved = *total ? number(gpu, "mem_reserved_mib", 551) * MIB : 0;
    u64 own = load_of(gpu) ? *total / 100 * 85 : held(gpu);
    *used = is_set(gpu, "mem_used_mib") ? number(gpu, "mem_used_mib", 0) * MIB : own;
    if (*reserved + *used > *total)
        *used = *total - *reserved;
}

typedef struct {
    u64 total, free, used;
} Memory;

typedef struct {
    unsigned version;
    u64 total, reserved, free, used;
} MemoryV2;

NVML nvmlDeviceGetMemoryInfo(const Device *device, Memory *memory)
{
    ENTER_DEVICE(device, 1);
    NEED(memory);
    u64 reserved;
    memory_of(device, &memory->total, &reserved, &memory->used);
    memory->used += reserved; /* the old call does not tell them apart */
    memory->free = memory->total - memory->used;
    return OK;
}

NVML nvmlDeviceGetMemoryInfo_v2(const Device *device, MemoryV2 *memory)
{
    ENTER_DEVICE(device, 1);
    NEED(memory);
    if (memory->version != 0x02000028)
        return VERSION_MISMATCH;
    memory_of(device, &memory->total, &memory->reserved, &memory->used);
    memory->free = memory->total - memory->used - memory->reserved;
    return OK;
}

NVML nvmlDeviceGetTemperature(const Device *device, unsigned sensor, unsigned *celsius)
{
    ENTER_DEVICE(device, 0);
    NEED(celsius && sensor == 0);
    *celsius = temperature_of(device->gpu);
    return OK;
}

typedef struct {
    unsigned version, sensor;
    int celsius;
} TemperatureV1;

NVML nvmlDeviceGetTemperatureV(const Device *device, TemperatureV1 *temperature)
{
    ENTER_DEVICE(device, 0);
    NEED(temperature);
    if (temperature->version != 0x100000C)
        return VERSION_MISMATCH;
    NEED(temperature->sensor == 0);
    temperature->celsius = (int)temperature_of(device->gpu);
    return OK;
}

NVML nvmlDeviceGetTemperatureThreshold(const Device *device, unsigned which, unsigned *celsius)
{
    static const char *const keys[] = {"temp_shutdown", "temp_slowdown", "temp_mem_max", "temp_gpu_max"};
    static const unsigned usual[] = {92, 89, 95, 87};
    ENTER_DEVICE(device, 0);
    NEED(celsius);
    if (which > 3)
        return NOT_SUPPORTED;
    *celsius = (unsigned)number(device->gpu, keys[which], usual[which]);
    return OK;
}

typedef struct {
    unsigned version;
    int celsius;
} MarginV1;

NVML nvmlDeviceGetMarginTemperature(const Device *device, MarginV1 *margin)
{
    ENTER_DEVICE(device, 0);
    NEED(margin);
    if (margin->version != 0x1000008)
        return VERSION_MISMATCH;
    int gpu = device->gpu;
    margin->celsius = (int)number(gpu, "temp_gpu_max", 87) - (int)temperature_of(gpu);
    return OK;
}

NVML nvmlDeviceGetPowerUsage(const Device *device, unsigned *milliwatts)
{
    ENTER_DEVICE(device, 0);
    NEED(milliwatts);
    *milliwatts = power_mw_of(device->gpu);
    return OK;
}

#define LIMIT(function)                                       \
    NVML function(const Device *device, unsigned *milliwatts) \
    {                                                         \
        ENTER_DEVICE(device, 0);                              \
        NEED(milliwatts);                                     \
        *milliwatts = (unsigned)limit_mw(device->gpu);        \
        return OK;                                            \
    }

LIMIT(nvmlDeviceGetEnforcedPowerLimit)
LIMIT(nvmlDeviceGetPowerManagementLimit)
LIMIT(nvmlDeviceGetPowerManagementDefaultLimit)

NVML nvmlDeviceGetTotalEnergyConsumption(const Device *device, u64 *millijoules)
{
    ENTER_DEVICE(device, 0);
    NEED(millijoules);
    if (!is_set(device->gpu, "energy_mj"))
        return NOT_SUPPORTED;
    *millijoules = counter(device->gpu, "energy_mj");
    return OK;
}

/* graphics, SM, memory, video */
static const char *const clock_keys[] = {"clock_graphics", "clock_sm", "clock_mem", "clock_video"};
static const char *const max_keys[] = {"max_graphics", "max_sm", "max_mem", "max_video"};
static const unsigned max_mhz[] = {1980, 1980, 2619, 1545};

NVML nvmlDeviceGetMaxClockInfo(const Device *device, unsigned which, unsigned *mhz)
{
    ENTER_DEVICE(device, 0);
    NEED(mhz && which < 4);
    *mhz = (unsigned)number(device->gpu, max_keys[which], max_mhz[which]);
    return OK;
}

NVML nvmlDeviceGetClockInfo(const Device *device, unsigned which, unsigned *mhz)
{
    ENTER_DEVICE(device, 0);
    NEED(mhz && which < 4);
    int gpu = device->gpu;
    unsigned top = (unsigned)number(gpu, max_keys[which], max_mhz[which]);
    unsigned busy = between(top * 0.9 + wave(gpu, 9, top * 0.03), 0, top);
    unsigned usual = which == 2 ? top : load_of(gpu) ? busy : 345;
    if (throttle_of(gpu) & 0xe8 && which != 2)
        usual = top * 6 / 10;
    *mhz = (unsigned)number(gpu, clock_keys[which], usual);
    return OK;
}

NVML nvmlDeviceGetCurrentClocksEventReasons(const Device *device, u64 *mask)
{
    ENTER_DEVICE(device, 0);
    NEED(mask);
    *mask = throttle_of(device->gpu);
    return OK;
}

NVML nvmlDeviceGetCurrentClocksThrottleReasons(const Device *device, u64 *mask)
{
    ENTER_DEVICE(device, 0);
    NEED(mask);
    *mask = throttle_of(device->gpu);
    return OK;
}
