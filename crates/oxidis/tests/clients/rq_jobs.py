"""rq against the server at a port: jobs through a worker, with results, failures, retries, dependencies and a schedule."""

import datetime
import logging
import time

import redis
import rq
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry


def square(number):
    return number * number


def fail():
    raise ValueError("as it should")


def fail_twice(port):
    tries = redis.Redis(port=port).incr("tries")
    if tries < 3:
        raise ValueError(f"try {tries}")
    return tries


def total(port):
    job = rq.get_current_job()
    return sum(dependency.return_value() for dependency in job.fetch_dependencies())


def main(port):
    logging.getLogger("rq.worker").setLevel(logging.CRITICAL)
    connection = redis.Redis(port=port)
    high, low = rq.Queue("high", connection=connection), rq.Queue("low", connection=connection)

    def work(**options):
        worker = rq.SimpleWorker([high, low], connection=connection)
        worker.work(burst=True, logging_level="CRITICAL", **options)

    jobs = [(high if number % 2 else low).enqueue(square, number) for number in range(60)]
    assert len(high) == 30 and len(low) == 30
    work()
    assert [job.return_value() for job in jobs] == [number * number for number in range(60)]
    assert len(FinishedJobRegistry(queue=high)) == 30
    for job in jobs:
        job.refresh()
    assert max(job.ended_at for job in jobs[1::2]) <= min(job.ended_at for job in jobs[0::2]), "low ran before high"
    print("results and order of queues")

    failing = high.enqueue(fail)
    retried = high.enqueue(fail_twice, port, retry=rq.Retry(max=3))
    work()
    assert failing.get_status() == JobStatus.FAILED and failing.id in FailedJobRegistry(queue=high)
    assert "as it should" in failing.latest_result().exc_string
    assert retried.return_value() == 3
    assert FailedJobRegistry(queue=high).requeue(failing.id)
    work()
    assert failing.get_status(refresh=True) == JobStatus.FAILED
    print("failures and retries")

    parts = [low.enqueue(square, number) for number in range(5)]
    whole = high.enqueue(total, port, depends_on=parts)
    assert whole.get_status() == JobStatus.DEFERRED
    work()
    work()
    assert whole.return_value() == 30
    print("dependencies")

    later = low.enqueue_in(datetime.timedelta(milliseconds=200), square, 9)
    assert later.id in ScheduledJobRegistry(queue=low)
    end = time.monotonic() + 8
    scheduler = rq.scheduler.RQScheduler([low], connection=connection)
    scheduler.acquire_locks()
    while later.get_status(refresh=True) == JobStatus.SCHEDULED:
        assert time.monotonic() < end, "the scheduled job is not due"
        scheduler.enqueue_scheduled_jobs()
        time.sleep(0.02)
    work()
    assert later.return_value() == 81
    scheduler.release_locks()
    print("schedule")

    cancelled = low.enqueue(square, 1)
    cancelled.cancel()
    work()
    assert Job.fetch(cancelled.id, connection=connection).get_status() == JobStatus.CANCELED
    assert low.empty() == 0 and len(low) == 0
    connection.close()
    print("done")
