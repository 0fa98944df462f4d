"""Changes and reads topics: a client of Kafka that is not the one under test.

create TOPIC PARTITIONS      makes a topic
delete TOPIC                 removes it
partitions TOPIC COUNT       adds partitions, up to a count
trim TOPIC PARTITION OFFSET  removes the messages before an offset
produce TOPIC                sends a message for each line of the input: {"key": "k", "value": "v", "partition": 0, "headers": {"a": "b"}}
consume TOPIC                prints all messages that are there, as such lines with their offsets
"""

import json
import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions, NewTopic
from kafka.errors import KafkaError

# How long a message waits for a broker that is being started again, in seconds.
PATIENCE = 180


def admin(brokers):
    return KafkaAdminClient(bootstrap_servers=brokers)


def consumer(brokers, **settings):
    return KafkaConsumer(bootstrap_servers=brokers, auto_offset_reset="earliest", enable_auto_commit=False, **settings)


def create(brokers, topic, partitions):
    admin(brokers).create_topics([NewTopic(topic, int(partitions), 1)])
    await_that(lambda: len(consumer(brokers).partitions_for_topic(topic) or ()) == int(partitions))


def delete(brokers, topic):
    admin(brokers).delete_topics([topic])
    await_that(lambda: topic not in consumer(brokers).topics())


def partitions(brokers, topic, count):
    admin(brokers).create_partitions({topic: NewPartitions(int(count))})
    await_that(lambda: len(consumer(brokers).partitions_for_topic(topic) or ()) == int(count))


def trim(brokers, topic, partition, offset):
    admin(brokers).delete_records({TopicPartition(topic, int(partition)): int(offset)})


def encoded(text):
    return None if text is None else text.encode()


def produce(brokers, topic):
    producer = reached(lambda: KafkaProducer(bootstrap_servers=brokers, acks="all", linger_ms=5))
    sent = []
    for line in sys.stdin:
        message = json.loads(line)
        headers = [(name, value.encode()) for name, value in message.get("headers", {}).items()]
        key, value = encoded(message.get("key")), encoded(message.get("value"))
        sent.append(producer.send(topic, key=key, value=value, partition=message.get("partition"), headers=headers))
    for one in sent:
        one.get(timeout=PATIENCE)


def consume(brokers, topic):
    reader = consumer(brokers)
    all = [TopicPartition(topic, number) for number in sorted(reader.partitions_for_topic(topic) or ())]
    reader.assign(all)
    ends = reader.end_offsets(all)
    reader.seek_to_beginning(*all)
    while any(reader.position(one) < ends[one] for one in all):
        for found in reader.poll(timeout_ms=1000).values():
            for message in found:
                print(json.dumps({
                    "partition": message.partition,
                    "offset": message.offset,
                    "key": message.key and message.key.decode(),
                    "value": message.value and message.value.decode(),
                    "headers": {name: value.decode() for name, value in message.headers},
                }))


def reached(client):
    """A client, as soon as a broker answers."""
    last = time.monotonic() + PATIENCE
    while True:
        try:
            return client()
        except KafkaError:
            if time.monotonic() > last:
                raise
            time.sleep(0.5)


def await_that(holds):
    for _ in range(200):
        if holds():
            return
        time.sleep(0.1)
    sys.exit("not within 20 seconds")


COMMANDS = {one.__name__: one for one in (create, delete, partitions, trim, produce, consume)}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in COMMANDS:
        sys.exit(f"usage: tool.py BROKERS COMMAND ...\n\n{__doc__}")
    COMMANDS[sys.argv[2]](sys.argv[1], *sys.argv[3:])
