// The last rates of a counter, in bounded memory.

/// The samples that are kept: five minutes.
export const KEPT = 150;

/// Values that are sampled once a round. All series have the same rounds.
export class Gauge {
  constructor() {
    this.values = new Float64Array(KEPT).fill(NaN);
    this.latest = -1;
  }

  /// Adds the value of `round`.
  set(round, value) {
    this.values[round % KEPT] = value;
    this.latest = round;
  }

  /// Returns the value of `round`.
  at(round) {
    return this.values[round % KEPT];
  }
}

/// The rate of a counter.
export class Series extends Gauge {
  constructor() {
    super();
    this.last = null;
  }

  /// Adds the value of the counter in `round`, `seconds` after the previous round.
  observe(round, value, seconds) {
    // A smaller value means that the process was restarted: all of it is new.
    const increase = this.last === null ? NaN : value < this.last ? value : value - this.last;
    this.set(round, seconds > 0 ? increase / seconds : NaN);
    this.last = value;
  }
}
