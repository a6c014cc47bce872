// Numbers and times as people read them.

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/// A count, with its thousands told apart.
export function count(value) {
  return WHOLE.format(value);
}

/// Something per second: three digits that matter.
export function rate(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  if (value < 10) return value.toFixed(value < 0.1 ? 2 : 1);
  return value < 10_000 ? WHOLE.format(value) : `${WHOLE.format(value / 1000)}k`;
}

/// A part of a whole.
export function percent(part, whole) {
  if (!whole) return '–';
  const share = (100 * part) / whole;
  return `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} %`;
}

const UNITS = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1_000, 's']];

/// A length as a policy file writes it.
export function millis(value) {
  const unit = UNITS.find(([size]) => value > 0 && value % size === 0);
  return unit ? `${value / unit[0]}${unit[1]}` : `${value}ms`;
}

/// How long something took, in seconds given.
export function took(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds === Infinity) return '> 1 s';
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  if (seconds >= 0.001) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${Math.round(seconds * 1_000_000)} µs`;
}

/// The time of day of a moment in milliseconds.
export function clock(at) {
  return new Date(at).toLocaleTimeString('en-GB');
}

/// A moment in seconds of the epoch, with its day.
export function moment(seconds) {
  const at = new Date(seconds * 1000);
  return `${at.toLocaleDateString('en-CA')} ${at.toLocaleTimeString('en-GB')}`;
}

const KINDS = {
  sliding_window: ', sliding',
  two_bucket: ', sliding (estimate)',
  sliding_log: ', sliding (exact)',
};

/// What a limit allows: `60 per 1h`, `10 per 1s, burst 20`, `100 at a time`.
export function allows(limit) {
  if (limit.algorithm === 'concurrency') return `${count(limit.quota)} at a time`;
  const burst = limit.algorithm === 'token_bucket' ? `, burst ${count(limit.capacity)}` : '';
  return `${count(limit.quota)} per ${millis(limit.window_ms)}${burst}${KINDS[limit.algorithm] ?? ''}`;
}

/// Whom a limit counts.
export function counted(limit) {
  return limit.per.length ? `per ${limit.per.join(', ')}` : 'for everybody';
}

/// How many there are of something.
export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}
