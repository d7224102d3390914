/* script.c - see script.h. */
#include "script.h"

/* A counter that was lost comes back at the clock, like one that a grant finds missing (S8.5): at an old token it would be taken for one
 * that was never lost, and could fall behind tokens handed out since. */
#define LOST_COUNTER                                                                                                               \
    "if not n then\n"                                                                                                              \
    "  local time = redis.call('TIME')\n"                                                                                          \
    "  least = math.max(least, time[1] * 1000000 + time[2])\n"                                                                     \
    "end\n"

/* Deletes the key if it holds our token: 1. Otherwise 0 = no key, {2, PTTL} = another's. */
static const char release_text[] = "local token = redis.call('GET', KEYS[1])\n"
                                   "if token == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
                                   "if not token then return 0 end\n"
                                   "return {2, redis.call('PTTL', KEYS[1])}\n";

/* Makes the key last at least ARGV[2] ms if it holds our token; never shorter, never a new key: 1. Otherwise 0 = no key,
 * 2 = another's. */
static const char extend_text[] =
    "local token = redis.call('GET', KEYS[1])\n"
    "if token ~= ARGV[1] then return token and 2 or 0 end\n"
    "if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end\n"
    "return 1\n";

/* Extends each KEYS[i] as above, by its token ARGV[2i - 1] and ms ARGV[2i]; an answer for each, -1 = an error there. */
static const char renew_text[] =
    "local answers = {}\n"
    "for i, key in ipairs(KEYS) do\n"
    "  local ms, answer = ARGV[2 * i], 1\n"
    "  local token = redis.pcall('GET', key)\n"
    "  if token == ARGV[2 * i - 1] then\n"
    "    local left = redis.pcall('PTTL', key)\n"
    "    if type(left) == 'number' and left < tonumber(ms) then left = redis.pcall('PEXPIRE', key, ms) end\n"
    "    if type(left) ~= 'number' then answer = -1 end\n"
    "  elseif type(token) == 'table' then\n"
    "    answer = string.find(token.err, 'WRONGTYPE', 1, true) and 2 or -1\n"
    "  else\n"
    "    answer = token and 2 or 0\n"
    "  end\n"
    "  answers[i] = answer\n"
    "end\n"
    "return answers\n";

/* Takes the lock for ARGV[2] ms and raises the counter, which is the answer; nil = held. A counter is never trusted alone: it
 * is at least the clock in microseconds, rounded down to a multiple of ARGV[4] so that nodes that agree go on agreeing (S8.5). It
 * lasts ARGV[3] ms. The lock is written last: an error before that leaves none. */
static const char grant_text[] =
    "if redis.call('EXISTS', KEYS[1]) == 1 then return false end\n"
    "local text = redis.call('GET', KEYS[2])\n"
    "local n = text and (string.match(text, '^%d+$') and tonumber(text) or -1)\n"
    "if n and (n < 0 or n >= 9007199254740991) then return redis.error_reply('ERR the fence counter is not usable') end\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000000 + time[2]\n"
    "local next = n and math.max(n + 1, now - now % ARGV[4]) or now\n"
    "redis.call('SET', KEYS[2], string.format('%.0f', next), 'PX', ARGV[3])\n"
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
    "return next\n";

/* Raises the counter to at least ARGV[2] if the lock is still ours: 1; else 0. */
static const char confirm_text[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n"
    "local text = redis.call('GET', KEYS[2])\n"
    "local n = text and (string.match(text, '^%d+$') and tonumber(text) or -1)\n"
    "if n and (n < 0 or n >= 9007199254740991) then return redis.error_reply('ERR the fence counter is not usable') end\n"
    "local least = tonumber(ARGV[2])\n" LOST_COUNTER
    "redis.call('SET', KEYS[2], string.format('%.0f', math.max(n or 0, least)), 'PX', ARGV[3])\n"
    "return 1\n";

/* The next token of the designated node: above the last one, and at least the clock in microseconds. Lasts ARGV[1] ms. */
static const char mint_text[] =
    "local text = redis.call('GET', KEYS[2])\n"
    "local n = text and (string.match(text, '^%d+$') and tonumber(text) or -1)\n"
    "if n and (n < 0 or n >= 9007199254740991) then return redis.error_reply('ERR the fence counter is not usable') end\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000000 + time[2]\n"
    "local next = n and math.max(n + 1, now) or now\n"
    "redis.call('SET', KEYS[2], string.format('%.0f', next), 'PX', ARGV[1])\n"
    "return next\n";

/* Sets a lock that is held elsewhere, with the counter at least at its fencing token ARGV[3]: OK; nil = the key is there. */
static const char fenced_top_up_text[] =
    "if redis.call('EXISTS', KEYS[1]) == 1 then return false end\n"
    "local text = redis.call('GET', KEYS[2])\n"
    "local n = text and (string.match(text, '^%d+$') and tonumber(text) or -1)\n"
    "if n and (n < 0 or n >= 9007199254740991) then return redis.error_reply('ERR the fence counter is not usable') end\n"
    "local least = tonumber(ARGV[3])\n" LOST_COUNTER
    "redis.call('SET', KEYS[2], string.format('%.0f', math.max(n or 0, least)), 'PX', ARGV[4])\n"
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
    "return redis.status_reply('OK')\n";

/* Raises the counter to at least ARGV[2], whoever holds the lock (which heals a node that was away, and is always safe); then as
 * release. Trouble with the counter must not keep the lock from being freed. */
static const char fenced_release_text[] =
    "local text = redis.pcall('GET', KEYS[2])\n"
    "local n = text and (type(text) == 'string' and string.match(text, '^%d+$') and tonumber(text) or -1)\n"
    "local least = tonumber(ARGV[2])\n" LOST_COUNTER "if not n or (n >= 0 and n < least) then\n"
    "  redis.pcall('SET', KEYS[2], string.format('%.0f', least), 'PX', ARGV[3])\n"
    "end\n"
    "local token = redis.call('GET', KEYS[1])\n"
    "if token == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
    "if not token then return 0 end\n"
    "return {2, redis.call('PTTL', KEYS[1])}\n";

/* Shows a fencing token ARGV[1] of the holder ARGV[2] to the store: 1 = none newer was seen, and it is remembered; 0 = stale. With
 * ARGV[3], that becomes the value of KEYS[1] in the same step. KEYS[2] has no expiry: what it knows must last as long as the data. */
static const char store_text[] =
    "local seen = redis.call('HMGET', KEYS[2], 'fence', 'holder')\n"
    "local n = seen[1] and (string.match(seen[1], '^%d+$') and tonumber(seen[1]) or -1)\n"
    "if n and (n < 0 or n >= 9007199254740992) then return redis.error_reply('ERR the highest fencing token is not usable') end\n"
    "local mine = tonumber(ARGV[1])\n"
    "if n and (mine < n or (mine == n and seen[2] ~= ARGV[2])) then return 0 end\n"
    "redis.call('HSET', KEYS[2], 'fence', ARGV[1], 'holder', ARGV[2])\n"
    "if ARGV[3] then redis.call('SET', KEYS[1], ARGV[3]) end\n"
    "return 1\n";

const struct rli_script rli_scripts[RLI_SCRIPTS] = {
    [RLI_SCRIPT_RELEASE] = {release_text, sizeof release_text - 1, "20da75687f66f315d9737393e4194a045311e236"},
    [RLI_SCRIPT_EXTEND] = {extend_text, sizeof extend_text - 1, "4c8fe71ec57ae2eb60c569cc39f539c18dd65214"},
    [RLI_SCRIPT_RENEW] = {renew_text, sizeof renew_text - 1, "2b6df147a3e33897ec650782dccd71d9fedfa05e"},
    [RLI_SCRIPT_GRANT] = {grant_text, sizeof grant_text - 1, "f827904be18dc9ccb812fd19b0c1ca9702d1e416"},
    [RLI_SCRIPT_CONFIRM] = {confirm_text, sizeof confirm_text - 1, "7aca9d5f5359afb508a23429f0cce2f88d938b05"},
    [RLI_SCRIPT_MINT] = {mint_text, sizeof mint_text - 1, "30480d6bee02abc6078b0eae7f9a11723642fb10"},
    [RLI_SCRIPT_FENCED_TOP_UP] = {fenced_top_up_text, sizeof fenced_top_up_text - 1, "28c8ecf5821359a0982e3aa9824d1ad6df6c99af"},
    [RLI_SCRIPT_FENCED_RELEASE] = {fenced_release_text, sizeof fenced_release_text - 1, "11d950eb82f1cf9d1e461c42cf1df5f173a20db5"},
    [RLI_SCRIPT_STORE] = {store_text, sizeof store_text - 1, "30819c8d1e7e93de55b79732319a53337c664dc7"},
};
