//! The scripts of Redis: each is done as a whole, and after its checks it writes or does not.

use redis::Script;

/// The keys: the hash with the lease and the ends of the log, and the stream of its entries, or the one that tells when the lease was given
/// back.
const TAKE: &str = "
local l = redis.call('HMGET', KEYS[1], 'epoch', 'nonce', 'renewals', 'free')
for i = 1, 4 do
    if (l[i] or '0') ~= ARGV[i] then return 0 end
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[5], 'nonce', ARGV[6], 'renewals', '0', 'free', '0', 'holder', ARGV[7])
return 1";

const RENEW: &str = "
local l = redis.call('HMGET', KEYS[1], 'epoch', 'nonce', 'free')
if l[1] ~= ARGV[1] or l[2] ~= ARGV[2] or l[3] ~= '0' then return 0 end
return redis.call('HINCRBY', KEYS[1], 'renewals', 1)";

const RELEASE: &str = "
local l = redis.call('HMGET', KEYS[1], 'epoch', 'nonce')
if l[1] == ARGV[1] and l[2] == ARGV[2] then
    redis.call('HSET', KEYS[1], 'free', '1')
    redis.call('XADD', KEYS[2], 'MAXLEN', '1', '*', 'epoch', ARGV[1])
end
return 1";

/// Answers with the epoch in force, the last position before, and whether the entry was added.
const APPEND: &str = "
local l = redis.call('HMGET', KEYS[1], 'epoch', 'last')
local epoch, last = l[1] or '0', l[2] or '0'
if epoch ~= ARGV[1] or tonumber(last) + 1 ~= tonumber(ARGV[2]) then return {epoch, last, 0} end
redis.call('XADD', KEYS[2], ARGV[2] .. '-0', 'epoch', epoch, 'body', ARGV[3])
redis.call('HSET', KEYS[1], 'last', ARGV[2])
return {epoch, last, 1}";

/// Answers with the first position that is kept and with entries, not more than a number of bytes unless one alone has more.
const READ: &str = "
local found, bytes, next = {}, 0, tonumber(ARGV[1]) + 1
for i = 1, tonumber(ARGV[2]) do
    local entry = redis.call('XRANGE', KEYS[2], string.format('%.0f-0', next), '+', 'COUNT', 1)[1]
    if not entry then break end
    bytes = bytes + #entry[2][4]
    if i > 1 and bytes > tonumber(ARGV[3]) then break end
    found[i] = {entry[1], entry[2][2], entry[2][4]}
    next = next + 1
end
return {redis.call('HGET', KEYS[1], 'first') or '1', found}";

/// Makes a snapshot the latest one; answers 0 where its parts are not all there. KEYS[2] has the parts, ARGV[4] begins the
/// keys of those of others.
const COMPLETE: &str = "
if redis.call('LLEN', KEYS[2]) ~= tonumber(ARGV[3]) then return 0 end
local l = redis.call('HMGET', KEYS[1], 'snapshot', 'number', 'last')
if tonumber(l[1] or '0') > tonumber(ARGV[1]) then
    redis.call('UNLINK', KEYS[2])
    return 1
end
redis.call('PERSIST', KEYS[2])
redis.call('HSET', KEYS[1], 'snapshot', ARGV[1], 'number', ARGV[2])
if (l[3] or '0') == '0' then
    redis.call('HSET', KEYS[1], 'last', ARGV[1], 'first', string.format('%.0f', tonumber(ARGV[1]) + 1))
end
if l[2] then redis.call('UNLINK', ARGV[4] .. l[2]) end
return 1";

const TRIM: &str = "
if tonumber(redis.call('HGET', KEYS[1], 'first') or '1') < tonumber(ARGV[1]) then
    redis.call('HSET', KEYS[1], 'first', ARGV[1])
    redis.call('XTRIM', KEYS[2], 'MINID', ARGV[1] .. '-0')
end
return 1";

/// The scripts with their digests.
pub(crate) struct Scripts {
    pub(crate) take: Script,
    pub(crate) renew: Script,
    pub(crate) release: Script,
    pub(crate) append: Script,
    pub(crate) read: Script,
    pub(crate) complete: Script,
    pub(crate) trim: Script,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        Scripts {
            take: Script::new(TAKE),
            renew: Script::new(RENEW),
            release: Script::new(RELEASE),
            append: Script::new(APPEND),
            read: Script::new(READ),
            complete: Script::new(COMPLETE),
            trim: Script::new(TRIM),
        }
    }
}
