/* nvmlDeviceGetFieldValues: the call succeeds, and each field tells for itself whether it has a value. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

u64 ecc_of(int gpu, unsigned type, unsigned span);

typedef struct {
    unsigned id, scope;
    long long timestamp, latency_us;
    unsigned type; /* of `value`: 0 double, 1 unsigned, 3 unsigned long long, 5 signed */
    unsigned code;
    union {
        double real;
        unsigned whole;
        int with_sign;
        u64 large;
    } value;
} FieldValue;

static int whole(FieldValue *field, u64 value)
{
    field->type = 1;
    field->value.whole = (unsigned)value;
    return OK;
}

static int large(FieldValue *field, u64 value)
{
    field->type = 3;
    field->value.large = value;
    return OK;
}

static int below_zero(FieldValue *field, u64 value)
{
    field->type = 5;
    field->value.with_sign = (int)value;
    return OK;
}

static int memory_errors(int gpu, FieldValue *field)
{
    if (!number(gpu, "ecc", 1) && field->id > 2)
        return NOT_SUPPORTED;
    switch (field->id) {
    case 1: return whole(field, number(gpu, "ecc", 1));
    case 2: return whole(field, number(gpu, "ecc_pending", number(gpu, "ecc", 1)));
    case 3: return large(field, ecc_of(gpu, 0, 0));
    case 4: return large(field, ecc_of(gpu, 1, 0));
    case 5: return large(field, ecc_of(gpu, 0, 1));
    case 6: return large(field, ecc_of(gpu, 1, 1));
    default: return NOT_SUPPORTED;
    }
}

static int remap(int gpu, FieldValue *field)
{
    static const char *const keys[] = {"remap_corrected", "remap_uncorrected", "remap_pending", "remap_failed"};
    return number(gpu, "mig", 0) ? NOT_SUPPORTED : whole(field, number(gpu, keys[field->id - 142], 0));
}

static int links(int gpu, FieldValue *field)
{
    u64 count = number(gpu, "nvlinks", 18), scope = field->scope;
    u64 up = scope < count && !((number(gpu, "nvlinks_down", 0) >> scope) & 1);
    if (!count)
        return NOT_SUPPORTED;
    switch (field->id) {
    case 38: return large(field, counter(gpu, "nvlink_crc_flit"));
    case 45: return large(field, counter(gpu, "nvlink_crc_data"));
    case 52: return large(field, counter(gpu, "nvlink_replay"));
    case 59: return large(field, counter(gpu, "nvlink_recovery"));
    case 90: return whole(field, number(gpu, "nvlink_mb_s", 26562));
    case 91: case 147: return whole(field, count);
    case 138: case 139: case 140: case 141:
        return large(field, (u64)(now_s() * load_of(gpu)) * 1000000);
    case 161: return whole(field, scope ? 0 : counter(gpu, "nvlink_replay"));
    case 162: return whole(field, scope ? 0 : counter(gpu, "nvlink_recovery"));
    case 163: return whole(field, scope ? 0 : counter(gpu, "nvlink_crc_flit"));
    case 164: return scope < count ? whole(field, up ? number(gpu, "nvlink_mb_s", 26562) : 0) : NOT_SUPPORTED;
    case 165: return scope < count ? whole(field, up) : NOT_SUPPORTED;
    case 166: return whole(field, number(gpu, "nvlink_version", 6));
    default: return NOT_SUPPORTED;
    }
}

static int limits(int gpu, FieldValue *field)
{
    u64 limit_mw = number(gpu, "power_limit_w", 700) * 1000;
    switch (field->id) {
    case 185: case 186: return whole(field, power_mw_of(gpu));
    case 187: return whole(field, number(gpu, "power_min_w", 200) * 1000);
    case 188: case 189: case 190: case 192: return whole(field, limit_mw);
    case 191: return is_set(gpu, "energy_mj") ? large(field, counter(gpu, "energy_mj")) : NOT_SUPPORTED;
    case 193: return below_zero(field, number(gpu, "tlimit_shutdown", (u64)-8));
    case 194: return below_zero(field, number(gpu, "tlimit_slowdown", (u64)-2));
    case 196: return below_zero(field, number(gpu, "tlimit_gpu_max", 0));
    default: return NOT_SUPPORTED;
    }
}

/* Nanoseconds that a reason held the clocks back; only counters that the control file sets grow. */
static int held_back(int gpu, FieldValue *field)
{
    switch (field->id) {
    case 74: return large(field, counter(gpu, "ns_sw_power_cap"));
    case 76: return large(field, counter(gpu, "ns_sync_boost"));
    case 269: return large(field, counter(gpu, "ns_sw_thermal"));
    case 270: return large(field, counter(gpu, "ns_hw_thermal"));
    case 271: return large(field, counter(gpu, "ns_hw_power_brake"));
    default: return NOT_SUPPORTED;
    }
}

static int fill(int gpu, FieldValue *field)
{
    u64 action = number(gpu, "recovery_action", 0);
    if (field->id >= 1 && field->id <= 6)
        return memory_errors(gpu, field);
    if (field->id >= 142 && field->id <= 145)
        return remap(gpu, field);
    if (field->id >= 185 && field->id <= 196)
        return limits(gpu, field);
    switch (field->id) {
    case 82: return whole(field, memory_temperature_of(gpu));
    case 94: return whole(field, counter(gpu, "pcie_replay"));
    case 95: return whole(field, counter(gpu, "pcie_replay_rollover"));
    case 226: return whole(field, action == 1);
    case 227: return whole(field, action == 4);
    case 230: return whole(field, action);
    case 74: case 76: case 269: case 270: case 271: return held_back(gpu, field);
    default: return links(gpu, field);
    }
}

NVML nvmlDeviceGetFieldValues(const Device *device, int count, FieldValue *fields)
{
    ENTER_DEVICE(device, 0);
    NEED(fields && count > 0);
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "field.%u", fields[i].id);
        fields[i].timestamp = (long long)(now_s() * 1e6);
        fields[i].latency_us = 0;
        memset(&fields[i].value, 0, sizeof fields[i].value);
        fields[i].type = 1;
        int code = (int)number(device->gpu, key, OK);
        fields[i].code = (unsigned)(code ? code : fill(device->gpu, &fields[i]));
    }
    return OK;
}
