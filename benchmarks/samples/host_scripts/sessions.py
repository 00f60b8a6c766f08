"""Clicks of users are cut into sessions, in order of user and time."""

import numba
import numpy as np
from numba import cuda

PAUSE = np.int64(1800)


@cuda.jit
def mark(user, time, starts):
    i = cuda.grid(1)
    if i < user.size:
        starts[i] = i == 0 or user[i] != user[i - 1] or time[i] - time[i - 1] > PAUSE


@cuda.jit
def name(starts, session):
    i = cuda.grid(1)
    if i < starts.size:
        first = i
        while not starts[first]:
            first -= 1
        session[i] = first


@numba.njit
def one_by_one(user, time):
    session = np.zeros(user.size, np.int64)
    for i in range(1, user.size):
        new = user[i] != user[i - 1] or time[i] - time[i - 1] > PAUSE
        session[i] = i if new else session[i - 1]
    return session


rng = np.random.default_rng(5)
user = np.sort(rng.integers(0, 40, 2000))
time = np.concatenate([np.sort(rng.integers(0, 40_000, n)) for n in np.bincount(user)])
d_user, d_time = cuda.to_device(user), cuda.to_device(time)
starts = cuda.device_array(user.size, dtype=np.bool_)
session = cuda.device_array(user.size, dtype=np.int64)
with cuda.defer_cleanup():
    mark.forall(user.size)(d_user, d_time, starts)
    name.forall(user.size)(starts, session)
found = session.copy_to_host()
np.testing.assert_array_equal(found, one_by_one(user, time))
print("sessions:", np.unique(found).size)
