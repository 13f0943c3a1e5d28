// BullMQ against the server at a port: workers, delays, retries, priorities, flows, repeated jobs, rates, events.
'use strict';
const assert = require('node:assert');
const { FlowProducer, Queue, QueueEvents, Worker } = require('bullmq');

const connection = { port: Number(process.argv[2]), host: '127.0.0.1', maxRetriesPerRequest: null };
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function eventually(condition, what) {
  const end = Date.now() + 20000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, what);
    await sleep(10);
  }
}

async function manyJobs() {
  const queue = new Queue('many', { connection });
  const events = new QueueEvents('many', { connection });
  await events.waitUntilReady();
  const seen = new Set();
  const completed = new Set();
  events.on('completed', ({ jobId, returnvalue }) => completed.add(`${jobId}:${returnvalue}`));
  const run = async (job) => {
    assert.ok(!seen.has(job.id), 'a job ran twice');
    seen.add(job.id);
    await job.updateProgress(50);
    await job.log('half');
    return job.data.n * 2;
  };
  const workers = [1, 2, 3].map(() => new Worker('many', run, { connection, concurrency: 10 }));
  await queue.addBulk(Array.from({ length: 500 }, (_, n) => ({ name: 'double', data: { n } })));
  await eventually(() => completed.size === 500, 'jobs are missing');
  const counts = await queue.getJobCounts('completed', 'failed', 'wait', 'active');
  assert.deepEqual(counts, { completed: 500, failed: 0, wait: 0, active: 0 });
  const job = await queue.add('awaited', { n: 21 });
  assert.equal(await job.waitUntilFinished(events, 10000), 42);
  assert.equal((await queue.getJobLogs(job.id)).count, 1);
  await Promise.all(workers.map((worker) => worker.close()));
  await events.close();
  await queue.obliterate({ force: true });
  await queue.close();
}

async function priorities() {
  const queue = new Queue('ordered', { connection });
  const order = [];
  for (const priority of [5, 3, 9, 1, 7]) await queue.add('p', { priority }, { priority });
  await queue.add('first', { priority: 0 });
  const worker = new Worker('ordered', async (job) => order.push(job.data.priority), { connection, concurrency: 1 });
  await eventually(() => order.length === 6, 'jobs are missing');
  assert.deepEqual(order, [0, 1, 3, 5, 7, 9]);
  await worker.close();
  await queue.close();
}

async function delaysAndRetries() {
  const queue = new Queue('late', { connection });
  const ran = [];
  const run = async (job) => {
    ran.push([job.name, Date.now()]);
    if (job.name === 'failing' && job.attemptsMade < 2) throw new Error(`attempt ${job.attemptsMade}`);
    if (job.name === 'lost') throw new Error('always');
  };
  const worker = new Worker('late', run, { connection, concurrency: 5 });
  const start = Date.now();
  await queue.add('delayed', {}, { delay: 300 });
  await queue.add('failing', {}, { attempts: 3, backoff: { type: 'exponential', delay: 50 } });
  await queue.add('lost', {}, { attempts: 2, backoff: 20, removeOnFail: false });
  await eventually(async () => (await queue.getCompletedCount()) === 2 && (await queue.getFailedCount()) === 1, 'not all ended');
  const times = (name) => ran.filter(([which]) => which === name).map(([, at]) => at - start);
  assert.ok(times('delayed')[0] >= 290, `the delayed job ran after ${times('delayed')} ms`);
  assert.equal(times('failing').length, 3);
  assert.equal(times('lost').length, 2);
  const [failed] = await queue.getFailed();
  assert.equal(failed.failedReason, 'always');
  await failed.retry();
  await eventually(() => times('lost').length >= 3, 'the retry did not run');
  await worker.close();
  await queue.close();
}

async function flows() {
  const flow = new FlowProducer({ connection });
  const sums = [];
  const parts = new Worker('parts', async (job) => job.data.n, { connection, concurrency: 4 });
  const whole = new Worker('whole', async (job) => {
    sums.push(Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0));
  }, { connection });
  const children = [1, 2, 3, 4].map((n) => ({ name: 'part', queueName: 'parts', data: { n } }));
  await flow.add({ name: 'sum', queueName: 'whole', data: {}, children });
  await eventually(() => sums.length === 1, 'the parent did not run');
  assert.deepEqual(sums, [10]);
  await Promise.all([parts.close(), whole.close(), flow.close()]);
}

async function repeatsAndRates() {
  const queue = new Queue('steady', { connection });
  let ran = 0;
  const limiter = { max: 20, duration: 100 };
  const worker = new Worker('steady', async () => ran++, { connection, limiter, concurrency: 50 });
  await queue.upsertJobScheduler('tick', { every: 100 }, { name: 'tick' });
  await eventually(() => ran >= 3, 'the scheduler makes no jobs');
  await queue.removeJobScheduler('tick');
  await queue.pause();
  ran = 0;
  await queue.addBulk(Array.from({ length: 60 }, () => ({ name: 'job', data: {} })));
  await sleep(150);
  assert.ok(ran <= 1, 'a paused queue works');
  const start = Date.now();
  await queue.resume();
  await eventually(() => ran >= 60, 'jobs are missing');
  assert.ok(Date.now() - start >= 150, 'the rate was not kept');
  await worker.close();
  await queue.close();
}

async function main() {
  for (const part of [manyJobs, priorities, delaysAndRetries, flows, repeatsAndRates]) {
    await part();
    console.log(part.name);
  }
  console.log('done');
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
