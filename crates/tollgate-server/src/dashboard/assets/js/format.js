// Numbers and times in readable form.

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/// Formats a count with thousands separators.
export function count(value) {
  return WHOLE.format(value);
}

/// Formats a rate per second with up to three significant digits.
export function rate(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (value === 0) return '0';
  if (value < 10) return value.toFixed(value < 0.1 ? 2 : 1);
  return value < 10_000 ? WHOLE.format(value) : `${WHOLE.format(value / 1000)}k`;
}

/// Formats a ratio as a percentage.
export function percent(part, whole) {
  if (!whole) return '–';
  const share = (100 * part) / whole;
  return `${share.toFixed(share > 0 && share < 10 ? 1 : 0)} %`;
}

const UNITS = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1_000, 's']];

/// Formats a duration as in a policy file.
export function millis(value) {
  const unit = UNITS.find(([size]) => value > 0 && value % size === 0);
  return unit ? `${value / unit[0]}${unit[1]}` : `${value}ms`;
}

/// Formats a duration in seconds.
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return '–';
  if (seconds === Infinity) return '> 1 s';
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  if (seconds >= 0.001) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${Math.round(seconds * 1_000_000)} µs`;
}

/// Formats a time in milliseconds as the time of day.
export function clock(at) {
  return new Date(at).toLocaleTimeString('en-GB');
}

/// Formats a time in seconds since the Unix epoch, with its date.
export function moment(seconds) {
  const at = new Date(seconds * 1000);
  return `${at.toLocaleDateString('en-CA')} ${at.toLocaleTimeString('en-GB')}`;
}

const KINDS = {
  sliding_window: ', sliding',
  two_bucket: ', sliding (estimate)',
  sliding_log: ', sliding (exact)',
};

/// Describes the quota of a limit: `60 per 1h`, `10 per 1s, burst 20`, `100 at a time`.
export function allows(limit) {
  if (limit.algorithm === 'concurrency') return `${count(limit.quota)} at a time`;
  const burst = limit.algorithm === 'token_bucket' ? `, burst ${count(limit.capacity)}` : '';
  return `${count(limit.quota)} per ${millis(limit.window_ms)}${burst}${KINDS[limit.algorithm] ?? ''}`;
}

/// Describes the subjects of a limit.
export function counted(limit) {
  return limit.per.length ? `per ${limit.per.join(', ')}` : 'all clients together';
}

/// Formats a number with its noun.
export function many(number, one, more = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : more}`;
}
