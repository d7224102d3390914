/* redispp.cpp - the worker for redis-plus-plus, with the RedLockMutexVessel of its patterns (scripted; 3 tries by default, pauses of
 * 200 ms). It is in no registry: install.sh builds it from a source tree that it is given. */
#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "worker.h"

using namespace sw::redis;
using std::chrono::milliseconds;

namespace
{

struct Session {
    std::unique_ptr<RedLockMutexVessel> vessel;
    std::string error;
};

void *open_session(const char *, const char *urls)
{
    std::vector<std::shared_ptr<Redis>> masters;
    std::istringstream list(urls);
    for (std::string url; std::getline(list, url, ',');) {
        // For `many`: a thread that finds no free connection waits for one.
        masters.push_back(std::make_shared<Redis>(url.replace(0, 5, "tcp") + "?pool_size=256"));
    }
    return new Session{std::make_unique<RedLockMutexVessel>(masters.begin(), masters.end()), ""};
}

void close_session(void *session)
{
    delete static_cast<Session *>(session);
}

void *acquire(void *data, const char *key, int64_t ttl_ms, int64_t wait_ms, const char **ret_error)
{
    auto *session = static_cast<Session *>(data);
    *ret_error = "busy";
    int64_t until = worker_now_us() + wait_ms * 1000;
    try {
        do {
            auto info = session->vessel->lock(key, RedLockUtils::lock_id(), milliseconds(ttl_ms));
            if (info.locked)
                return new RedLockMutexVessel::LockInfo(info);
        } while (worker_now_us() < until);
    } catch (const std::exception &error) {
        *ret_error = "an exception";
    }
    return nullptr;
}

/* It does not tell whether the lock was still held. */
bool release(void *data, void *handle, const char **ret_error)
{
    std::unique_ptr<RedLockMutexVessel::LockInfo> info(static_cast<RedLockMutexVessel::LockInfo *>(handle));
    *ret_error = "an exception";
    try {
        static_cast<Session *>(data)->vessel->unlock(*info);
        return true;
    } catch (const std::exception &error) {
        return false;
    }
}

} // namespace

int main(int argc, char **argv)
{
    peer library{};
    library.open = open_session;
    library.close = close_session;
    library.acquire = acquire;
    library.release = release;
    library.shared = true;
    return worker_main(argc, argv, &library);
}
