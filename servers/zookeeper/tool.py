"""Fills ZooKeeper as a Stolos does, with the library that Stolos uses: HOST:PORT COMMAND ARGUMENT...

ready                          connect
job APP JOB STATE [RETRIES]    the record of a job
queue APP JOB PRIORITY         put a job into the queue of its app
lock APP JOB                   hold the lock on a job's execution until the end of the input
close PATH USER PASSWORD       make a node that only this user may read, with all that is below
remove PATH                    remove a node with all that is below
"""

import sys

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock
from kazoo.recipe.queue import LockingQueue
from kazoo.security import make_digest_acl


def close(client, path, acl):
    for child in client.get_children(path):
        close(client, path + "/" + child, acl)
    client.set_acls(path, [acl])


def main(hosts, command, *arguments):
    client = KazooClient(hosts)
    client.start(timeout=5)
    if command == "job":
        app, job, state, *retries = arguments
        path = "{}/all_subtasks/{}".format(app, job)
        client.create(path, state.encode(), makepath=True)
        if retries:
            client.create(path + "/retry_count", retries[0].encode())
    elif command == "queue":
        app, job, priority = arguments
        LockingQueue(client, app).put(job.encode(), int(priority))
    elif command == "lock":
        lock = Lock(client, "{}/all_subtasks/{}/execute_lock".format(*arguments))
        lock.acquire()
        print("locked", flush=True)
        sys.stdin.read()
        lock.release()
    elif command == "close":
        path, user, password = arguments
        close(client, path, make_digest_acl(user, password, all=True))
    elif command == "remove":
        client.delete(arguments[0], recursive=True)
    elif command != "ready":
        raise SystemExit(__doc__)
    client.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
