// A parser of Prometheus's text format, for the part that this node uses.

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

/// Returns the samples of a page by family: each has labels and a value.
export function parse(text) {
  const families = new Map();
  for (const line of text.split('\n')) {
    const found = line[0] === '#' ? null : LINE.exec(line);
    if (!found) continue;
    const [, name, labels, value] = found;
    if (!families.has(name)) families.set(name, []);
    families.get(name).push({ labels: read(labels ?? ''), value: number(value) });
  }
  return families;
}

function read(text) {
  const labels = Object.create(null);
  for (const [, name, value] of text.matchAll(LABEL)) {
    labels[name] = value.replace(/\\[n"\\]/g, (escape) => ESCAPES[escape]);
  }
  return labels;
}

function number(text) {
  return text === '+Inf' ? Infinity : Number(text);
}

/// Returns the quantile `share` of a histogram in the unit of its buckets, or `null` if it is empty.
/// `buckets` are [bound, count] with cumulative counts.
export function quantile(buckets, share) {
  const all = buckets.length ? buckets[buckets.length - 1][1] : 0;
  if (all <= 0) return null;
  const rank = share * all;
  let [below, counted] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank && count > counted) {
      if (bound === Infinity) return Infinity;
      return below + ((bound - below) * (rank - counted)) / (count - counted);
    }
    [below, counted] = [bound, count];
  }
  return null;
}
