/**
 * Reads the text of `/metrics`: values by `name{labels}` with the labels sorted. Throws for lines that mean nothing.
 */
export function parseExposition(text: string): {
  readonly values: Map<string, number>;
  readonly types: Map<string, string>;
} {
  const values = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of text.split('\n')) {
    if (line === '' || line === '# EOF' || line.startsWith('# HELP ')) continue;
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type !== null) {
      types.set(type[1]!, type[2]!);
      continue;
    }
    const sample =
      /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[\d.e+-]+|NaN|[+-]Inf)$/.exec(line);
    if (sample === null) throw new Error(`Not a sample: ${line}`);
    const labels = [...(sample[2] ?? '').matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)]
      .map(([all]) => all)
      .sort()
      .join(',');
    const key = labels === '' ? sample[1]! : `${sample[1]}{${labels}}`;
    if (values.has(key)) throw new Error(`Twice: ${key}`);
    values.set(key, Number(sample[3]));
  }
  return { values, types };
}
