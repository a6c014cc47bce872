// The last rates of a counter, in bounded memory.

/// The samples that are kept: five minutes.
export const KEPT = 150;

/// A counter that is sampled once a round. All series have the same rounds.
export class Series {
  constructor() {
    this.rates = new Float64Array(KEPT).fill(NaN);
    this.last = null;
  }

  /// Adds the value of the counter in `round`, `seconds` after the previous round.
  look(round, value, seconds) {
    // A smaller value means that the process was restarted: all of it is new.
    const grown = this.last === null ? NaN : value < this.last ? value : value - this.last;
    this.rates[round % KEPT] = seconds > 0 ? grown / seconds : NaN;
    this.last = value;
  }

  /// Returns the rate of `round`.
  at(round) {
    return this.rates[round % KEPT];
  }
}
