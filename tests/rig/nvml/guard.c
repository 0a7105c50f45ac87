/* What every call goes through first: slowness, hangs, crashes and errors that the control file asks for. */
#define _GNU_SOURCE
#include "standin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

Device devices[MAX_GPUS];
Device mig_devices[MAX_GPUS][MAX_MIG];
int references;

__attribute__((constructor)) static void number_devices(void)
{
    for (int gpu = 0; gpu < MAX_GPUS; gpu++) {
        devices[gpu] = (Device){gpu, -1};
        for (int mig = 0; mig < MAX_MIG; mig++)
            mig_devices[gpu][mig] = (Device){gpu, mig};
    }
}

int physical(unsigned index)
{
    int total = (int)number(NODE, "gpus", 8);
    for (int gpu = 0; gpu < total && gpu < MAX_GPUS; gpu++)
        if (!number(gpu, "missing", 0) && index-- == 0)
            return gpu;
    return -1;
}

int gpu_count(void)
{
    int count = 0;
    while (physical((unsigned)count) >= 0)
        count++;
    return count;
}

void block_for_ever(void)
{
    /* A driver call in D state does not return for any signal that a program handles. */
    for (;;)
        pause();
}

/* Obey `hang` and `crash`; any other word is a return code. */
static int obey(const char *word)
{
    if (!word)
        return OK;
    if (!strcmp(word, "hang"))
        block_for_ever();
    if (!strcmp(word, "crash")) {
        /* Python's faulthandler and the like must not turn it into something milder. */
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    return atoi(word);
}

static int fault(int scope, const char *function)
{
    u64 slow_ms = number(scope, "slow_ms", 0);
    if (slow_ms) {
        struct timespec wait = {(time_t)(slow_ms / 1000), (long)(slow_ms % 1000) * 1000000L};
        nanosleep(&wait, NULL);
    }
    char key[128];
    snprintf(key, sizeof key, "fn.%s", function);
    int code = obey(text(scope, "all", NULL));
    return code ? code : obey(text(scope, key, NULL));
}

int enter(const char *function)
{
    int code = fault(NODE, function);
    if (code)
        return code;
    return references > 0 ? OK : UNINITIALIZED;
}

int enter_device(const char *function, const Device *device, int mig_allowed)
{
    int code = enter(function);
    if (code)
        return code;
    int whole = device >= devices && device < devices + MAX_GPUS;
    int part = device >= &mig_devices[0][0] && device <= &mig_devices[MAX_GPUS - 1][MAX_MIG - 1];
    if (!whole && !part)
        return INVALID_ARGUMENT;
    code = fault(device->gpu, function);
    return code ? code : part && !mig_allowed ? NOT_SUPPORTED : OK;
}

int put_text(char *buffer, unsigned size, const char *value)
{
    NEED(buffer);
    if (strlen(value) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return OK;
}
