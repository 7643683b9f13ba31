"""Experience in shared memory. Now: slots, one segment each, and the records of what blocks ask the inference
server. Replay will live here too.

This room knows shapes and rows. It does not know who may write when: that is the law's, and every slot has one owner at a
time because the law never names a slot to two.
"""
