/* status.c - texts of the result codes, and the version. */
#include "redlatch.h"

const char *rl_strstatus(int status)
{
    switch (status) {
    case RL_OK:
        return "ok";
    case RL_BUSY:
        return "held by another";
    case RL_LOST:
        return "the lease is over";
    case RL_CANCELED:
        return "canceled";
    case RL_E_INVALID:
        return "invalid argument";
    case RL_E_NO_MEMORY:
        return "out of memory or descriptors";
    case RL_E_NO_QUORUM:
        return "too few nodes answered";
    case RL_E_TOO_SLOW:
        return "the answers came too late for this ttl";
    case RL_E_AUTH:
        return "the servers refused our credentials or commands";
    case RL_E_UNSUPPORTED:
        return "not supported (built without TLS, a newer option, or two URLs for one server)";
    case RL_E_CLOSED:
        return "the client was freed";
    case RL_E_FORKED:
        return "inherited over fork()";
    default:
        return "unknown status";
    }
}

const char *rl_version(void)
{
    return RL_VERSION_STRING;
}
