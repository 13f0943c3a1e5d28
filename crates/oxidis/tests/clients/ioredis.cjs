// ioredis against the server at a port: pipelines, transactions, scripts, pub/sub, streams, blocking, scans, prefixes.
'use strict';
const assert = require('node:assert');
const loaded = require('ioredis');
const Redis = loaded.Redis ?? loaded.default ?? loaded;

const port = Number(process.argv[2]);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function eventually(condition, what) {
  const end = Date.now() + 8000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, what);
    await sleep(5);
  }
}

async function values(redis) {
  assert.equal(await redis.set('text', 'value', 'EX', 100), 'OK');
  assert.equal(await redis.get('text'), 'value');
  assert.equal(await redis.hset('hash', { a: 1, b: 'two' }), 2);
  assert.deepEqual({ ...(await redis.hgetall('hash')) }, { a: '1', b: 'two' });
  assert.deepEqual((await redis.zadd('zset', 1.5, 'low', 2.25, 'high'), await redis.zrange('zset', 0, -1, 'WITHSCORES')), [
    'low', '1.5', 'high', '2.25',
  ]);
  assert.deepEqual(await redis.getBuffer('text'), Buffer.from('value'));
  await assert.rejects(redis.lpush('text', 1), /WRONGTYPE/);
  await Promise.all(Array.from({ length: 1000 }, (_, i) => redis.set(`scan:${i}`, i)));
  const seen = new Set();
  for await (const keys of redis.scanStream({ match: 'scan:*', count: 100 })) keys.forEach((key) => seen.add(key));
  assert.equal(seen.size, 1000);
}

async function pipelines(redis) {
  const pipeline = redis.pipeline();
  for (let i = 0; i < 500; i++) pipeline.incrby('sum', i);
  const replies = await pipeline.exec();
  assert.deepEqual(replies.at(-1), [null, 124750]);
  const results = await redis.multi().set('a', 1).incr('a').lpush('a', 1).get('a').exec();
  assert.deepEqual(results.map(([error, value]) => (error ? 'error' : value)), ['OK', 2, 'error', '2']);
  const other = redis.duplicate();
  await redis.watch('a');
  await other.set('a', 5);
  assert.equal(await redis.multi().incr('a').exec(), null);
  other.disconnect();
  const auto = new Redis({ port, enableAutoPipelining: true });
  const got = await Promise.all(Array.from({ length: 300 }, (_, i) => auto.set(`auto:${i}`, i).then(() => auto.get(`auto:${i}`))));
  assert.deepEqual(got, Array.from({ length: 300 }, (_, i) => String(i)));
  auto.disconnect();
}

async function scripts(redis) {
  redis.defineCommand('addall', {
    numberOfKeys: 2,
    lua: "local t = 0 for _, k in ipairs(KEYS) do t = t + redis.call('incrby', k, ARGV[1]) end return {t, KEYS[1]}",
  });
  assert.deepEqual(await redis.addall('{s}1', '{s}2', 5), [10, '{s}1']);
  assert.deepEqual(await redis.addall('s1', 's2', 5), [10, 's1']);
  await redis.script('FLUSH');
  assert.deepEqual(await redis.addall('{s}1', '{s}2', 5), [20, '{s}1']);
  await redis.script('FLUSH');
  const [[error, value]] = await redis.pipeline().addall('{s}1', '{s}2', 5).exec();
  assert.deepEqual([error, value], [null, [30, '{s}1']]);
}

async function pubsub(redis) {
  const listener = redis.duplicate();
  const seen = [];
  listener.on('message', (channel, message) => seen.push([channel, message]));
  listener.on('pmessage', (pattern, channel, message) => seen.push([pattern, channel, message]));
  await listener.subscribe('news', 'other');
  await listener.psubscribe('n*');
  for (let i = 0; i < 50; i++) assert.equal(await redis.publish('news', i), 2);
  await eventually(() => seen.length === 100, 'messages are missing');
  await listener.unsubscribe('news', 'other');
  await listener.punsubscribe('n*');
  assert.equal(await listener.ping(), 'PONG');
  listener.disconnect();
}

async function streams(redis) {
  await redis.xgroup('CREATE', 'events', 'workers', '0', 'MKSTREAM');
  const waiting = redis.duplicate();
  const reply = waiting.xreadgroup('GROUP', 'workers', 'w', 'COUNT', 10, 'BLOCK', 5000, 'STREAMS', 'events', '>');
  const id = await redis.xadd('events', '*', 'n', 1);
  assert.deepEqual(await reply, [['events', [[id, ['n', '1']]]]]);
  assert.equal((await redis.xpending('events', 'workers'))[0], 1);
  assert.equal(await redis.xack('events', 'workers', id), 1);
  const pushed = waiting.brpoplpush('from', 'to', 5);
  await redis.lpush('from', 'x');
  assert.equal(await pushed, 'x');
  const nothing = await waiting.blpop('never', 0.05);
  assert.equal(nothing, null);
  waiting.disconnect();
}

async function prefixes() {
  const redis = new Redis({ port, keyPrefix: 'app:', db: 3, connectionName: 'prefixed' });
  await redis.mset('a', 1, 'b', 2);
  assert.deepEqual((await redis.keys('*')).sort(), ['app:a', 'app:b']);
  assert.equal(await redis.client('GETNAME'), 'prefixed');
  redis.disconnect();
}

async function main() {
  const redis = new Redis({ port });
  for (const part of [values, pipelines, scripts, pubsub, streams, prefixes]) {
    await redis.flushall();
    await part(redis);
    console.log(part.name);
  }
  await redis.quit();
  console.log('done');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
