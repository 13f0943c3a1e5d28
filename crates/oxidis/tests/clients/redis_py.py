"""redis-py against the server at a port: pipelines, scripts, pub/sub, streams, locks, client-side caching, asyncio."""

import asyncio
import threading
import time

import redis
import redis.asyncio
import redis.connection
from redis.cache import CacheConfig


def eventually(condition, what, seconds=8):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.005)


def text(value):
    """Replies as text, whatever the protocol says of them."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, tuple)):
        return [text(item) for item in value]
    if isinstance(value, dict):
        return {text(key): text(item) for key, item in value.items()}
    return value


def values(r):
    assert r.set("text", "value", ex=100) and text(r.get("text")) == "value"
    assert 99 <= r.ttl("text") <= 100
    assert r.set("text", "other", nx=True) is None
    assert text(r.set("text", "third", get=True)) == "value"
    assert r.incrby("number", 41) == 41 and r.incrbyfloat("number", 0.5) == 41.5
    assert r.hset("hash", mapping={"a": 1, "b": "two"}) == 2
    assert text(r.hgetall("hash")) == {"a": "1", "b": "two"}
    assert r.sadd("set", "x", "y", "x") == 2 and {text(m) for m in r.smembers("set")} == {"x", "y"}
    assert r.zadd("zset", {"low": 1.5, "high": 2.25}) == 2
    assert [(text(m), s) for m, s in r.zrange("zset", 0, -1, withscores=True)] == [("low", 1.5), ("high", 2.25)]
    assert r.rpush("list", 1, 2, 3) == 3 and text(r.lrange("list", 0, -1)) == ["1", "2", "3"]
    assert text(r.lmove("list", "other", "LEFT", "RIGHT")) == "1"
    assert text(r.blpop(["none", "list"], timeout=1)) == ["list", "2"]
    assert r.geoadd("places", (13.36, 38.11, "Palermo", 15.08, 37.50, "Catania")) == 2
    assert 160_000 < float(r.geodist("places", "Palermo", "Catania")) < 170_000
    assert r.pfadd("hll", *range(1000)) == 1 and 950 < r.pfcount("hll") < 1050
    assert r.setbit("bits", 7, 1) == 0 and r.bitcount("bits") == 1
    for number in range(500):
        r.set(f"scan:{number}", number)
    assert len({text(key) for key in r.scan_iter("scan:*", count=50)}) == 500
    try:
        r.lpush("text", 1)
        raise AssertionError("no error")
    except redis.ResponseError as error:
        assert str(error).startswith("WRONGTYPE"), error


def pipelines(r):
    with r.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"p:{number}", number)
            pipe.get(f"p:{number}")
        replies = pipe.execute()
    assert text(replies[1::2]) == [str(number) for number in range(1000)]
    with r.pipeline() as pipe:
        pipe.multi()
        pipe.incr("counter").incr("counter").lpush("counter", 1)
        try:
            pipe.execute()
            raise AssertionError("no error")
        except redis.ResponseError as error:
            assert "WRONGTYPE" in str(error)
    assert int(r.get("counter")) == 2

    def add(connection):
        for _ in range(50):
            connection.transaction(lambda pipe: increment(pipe), "watched")

    def increment(pipe):
        value = int(pipe.get("watched") or 0)
        pipe.multi()
        pipe.set("watched", value + 1)

    threads = [threading.Thread(target=add, args=(r,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(r.get("watched")) == 200


def scripts(r):
    add = r.register_script("local n = redis.call('incrby', KEYS[1], ARGV[1]) return {n, KEYS[1], cjson.encode({n})}")
    assert text(add(keys=["scripted"], args=[5])) == [5, "scripted", "[5]"]
    r.script_flush()
    # The client meets NOSCRIPT, loads the script and tries again.
    assert text(add(keys=["scripted"], args=[5])) == [10, "scripted", "[10]"]
    with r.pipeline() as pipe:
        add(keys=["scripted"], args=[1], client=pipe)
        pipe.get("scripted")
        assert text(pipe.execute()[1]) == "11"
    library = "#!lua name=py\nredis.register_function{function_name='twice', callback=function(keys, args) return args[1] * 2 end, flags={'no-writes'}}"
    assert text(r.function_load(library, replace=True)) == "py"
    assert r.fcall_ro("twice", 0, 21) == 42
    assert r.function_delete("py")
    try:
        r.eval("return redis.call('nosuch')", 0)
        raise AssertionError("no error")
    except redis.ResponseError as error:
        assert "Unknown Redis command called from script" in str(error)


def pubsub(r):
    seen = []
    listener = r.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(**{"news": lambda message: seen.append(text(message["data"]))})
    listener.psubscribe(**{"n*s": lambda message: seen.append("pattern " + text(message["channel"]))})
    thread = listener.run_in_thread(sleep_time=0.01)
    eventually(lambda: r.pubsub_numsub("news")[0][1] == 1 and r.pubsub_numpat() == 1, "nobody subscribed")
    for number in range(100):
        assert r.publish("news", number) == 2
    eventually(lambda: len(seen) == 200, "messages are missing")
    assert [word for word in seen if not word.startswith("p")] == [str(number) for number in range(100)]
    thread.stop()
    thread.join()
    listener.close()


def streams(r):
    r.xgroup_create("events", "workers", id="0", mkstream=True)
    ids = [text(r.xadd("events", {"n": number}, maxlen=1000, approximate=True)) for number in range(100)]
    assert r.xlen("events") == 100
    done = []

    def work(name):
        while True:
            reply = r.xreadgroup("workers", name, {"events": ">"}, count=7, block=50)
            if not reply:
                return
            entries = list(reply.values())[0][0] if isinstance(reply, dict) else reply[0][1]
            for entry in entries:
                done.append(int(entry[1][b"n"] if b"n" in entry[1] else entry[1]["n"]))
                if done[-1] % 10:
                    r.xack("events", "workers", entry[0])

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(100))
    assert r.xpending("events", "workers")["pending"] == 10
    claimed = r.xautoclaim("events", "workers", "heir", min_idle_time=0, start_id="0-0", count=100)
    assert text([entry[0] for entry in claimed[1]]) == ids[::10]
    assert r.xpending_range("events", "workers", min="-", max="+", count=3, consumername="heir")[0]["times_delivered"] == 2
    assert r.xinfo_stream("events")["length"] == 100
    assert r.xinfo_groups("events")[0]["pending"] == 10
    assert r.xtrim("events", maxlen=5, approximate=False) == 95
    assert text([entry[0] for entry in r.xrevrange("events", count=1)]) == ids[-1:]


def locks(r):
    lock = r.lock("a-lock", timeout=10)
    assert lock.acquire() and lock.owned() and lock.extend(5)
    assert not r.lock("a-lock", timeout=10).acquire(blocking=False)
    lock.release()
    shared = {"count": 0}

    def work():
        for _ in range(25):
            with r.lock("b-lock", timeout=20, sleep=0.001):
                before = shared["count"]
                time.sleep(0.0002)
                shared["count"] = before + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared["count"] == 100
    gone = r.lock("c-lock", timeout=10)
    gone.acquire()
    r.delete("c-lock")
    try:
        gone.release()
        raise AssertionError("no error")
    except redis.exceptions.LockNotOwnedError:
        pass


def caching(port):
    # It asks for 7.4 by name; what it uses of the server is there since 6.0.
    redis.connection.CacheProxyConnection.MIN_ALLOWED_VERSION = "6.0.0"
    reader = redis.Redis(port=port, protocol=3, cache_config=CacheConfig())
    with reader, redis.Redis(port=port) as writer:
        for number in range(50):
            writer.set(f"cached:{number}", number)
        for _ in range(3):
            assert [int(reader.get(f"cached:{number}")) for number in range(50)] == list(range(50))
        assert reader.get_cache().size >= 50
        before = int(writer.info("commandstats")["cmdstat_get"]["calls"])
        for number in range(50):
            reader.get(f"cached:{number}")
        assert int(writer.info("commandstats")["cmdstat_get"]["calls"]) == before, "reads went to the server"
        for number in range(50):
            writer.incr(f"cached:{number}")
        eventually(
            lambda: [int(reader.get(f"cached:{number}")) for number in range(50)] == list(range(1, 51)),
            "old values are kept",
        )


async def asynchronous(port):
    client = redis.asyncio.Redis(port=port, decode_responses=True, max_connections=300)
    await asyncio.gather(*(client.set(f"async:{number}", number) for number in range(200)))
    assert await client.mget([f"async:{number}" for number in range(200)]) == [str(number) for number in range(200)]
    waiting = asyncio.create_task(client.blpop(["async:list"], timeout=5))
    await client.rpush("async:list", "pushed")
    assert list(await waiting) == ["async:list", "pushed"]
    async with client.pipeline() as pipe:
        assert await pipe.incr("async:count").incr("async:count").execute() == [1, 2]
    await client.aclose()


def main(port):
    for protocol in (2, 3):
        for decode in (False, True):
            r = redis.Redis(port=port, protocol=protocol, decode_responses=decode)
            for part in (values, pipelines, scripts, pubsub, streams, locks):
                r.flushall()
                part(r)
                print(part.__name__, protocol, decode)
            r.close()
    caching(port)
    print("caching")
    asyncio.run(asynchronous(port))
    print("done")
