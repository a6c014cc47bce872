// A counter's last values, in bounded memory.

/// Looks that are kept: five minutes of them.
export const KEPT = 150;

/// A counter, looked at once a round. The rounds of all series are one.
export class Series {
  constructor() {
    this.rates = new Float64Array(KEPT).fill(NaN);
    this.last = null;
  }

  /// Takes what the counter says in `round`, `seconds` after the round before.
  look(round, value, seconds) {
    // Of a process that was started anew all has happened since.
    const grown = this.last === null ? NaN : value < this.last ? value : value - this.last;
    this.rates[round % KEPT] = seconds > 0 ? grown / seconds : NaN;
    this.last = value;
  }

  /// The rate of `round`.
  at(round) {
    return this.rates[round % KEPT];
  }
}
