/** The text that Prometheus reads, taken apart (https://prometheus.io/docs/instrumenting/exposition_formats/). */

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** With `_bucket`, `_sum` or `_count` behind the family's for histograms. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export function familiesOf(text: string): Family[] {
  const families: { name: string; help: string; type: string; samples: Sample[] }[] = [];
  const at = (name: string) => {
    const last = families.at(-1);
    if (last?.name === name) return last;
    const made = { name, help: '', type: 'untyped', samples: [] };
    families.push(made);
    return made;
  };
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ') || line.startsWith('# TYPE ')) {
      const rest = line.slice(7);
      const space = rest.indexOf(' ');
      const family = at(space < 0 ? rest : rest.slice(0, space));
      const said = space < 0 ? '' : rest.slice(space + 1);
      if (line.startsWith('# HELP')) family.help = said.replaceAll('\\n', ' ').replaceAll('\\\\', '\\');
      else family.type = said;
    } else if (line !== '' && !line.startsWith('#')) {
      const sample = sampleOf(line);
      if (sample === null) continue;
      const last = families.at(-1);
      (last !== undefined && sample.name.startsWith(last.name) ? last : at(sample.name)).samples.push(sample);
    }
  }
  return families.filter(({ samples }) => samples.length > 0);
}

function sampleOf(line: string): Sample | null {
  const brace = line.indexOf('{');
  const space = line.indexOf(' ');
  if (brace < 0 || (space >= 0 && space < brace))
    return space < 0 ? null : { name: line.slice(0, space), labels: {}, value: numberOf(line.slice(space + 1)) };
  const labels: Record<string, string> = {};
  let at = brace + 1;
  while (at < line.length && line[at] !== '}') {
    const equals = line.indexOf('=', at);
    if (equals < 0 || line[equals + 1] !== '"') return null;
    const name = line.slice(at, equals);
    let value = '';
    at = equals + 2;
    for (; at < line.length && line[at] !== '"'; at++) {
      if (line[at] !== '\\') value += line[at];
      else value += line[++at] === 'n' ? '\n' : (line[at] ?? '');
    }
    labels[name] = value;
    at++;
    if (line[at] === ',') at++;
  }
  return { name: line.slice(0, brace), labels, value: numberOf(line.slice(at + 1).trim()) };
}

/** A time may stand behind the value. */
function numberOf(text: string): number {
  const space = text.indexOf(' ');
  const value = space < 0 ? text : text.slice(0, space);
  return value === '+Inf' ? Infinity : value === '-Inf' ? -Infinity : Number(value);
}
