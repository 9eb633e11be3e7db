import { editDistance } from '../failure.ts';
import { absenceOf } from './reference.ts';
import type { OptionGroup, OptionSpec } from './option.ts';

export const ENVIRONMENT_PREFIX = 'SERVER_';

/** How an option is spelt where. */
type Spelling = (name: string) => string;

/** `MaxAppendSize` -> `--max-append-size`. */
export const commandLineName: Spelling = (name) => `--${words(name).replaceAll(':', '-').toLowerCase()}`;
/** `AutoScavenge:Enabled` -> `SERVER_AUTO_SCAVENGE__ENABLED`. */
export const environmentName: Spelling = (name) =>
  ENVIRONMENT_PREFIX + words(name).replaceAll('-', '_').replaceAll(':', '__').toUpperCase();
export const yamlName: Spelling = (name) => name;

function words(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2');
}

/** Without case and separators, which the command line and the environment don't look at. */
function plain(name: string): string {
  return name.replaceAll(/[-_:]/g, '').toLowerCase();
}

/** A name that was found: the option, and the former name of it when that was used. */
export interface Found {
  readonly name: string;
  readonly option: OptionSpec<unknown>;
  readonly alias: string | null;
}

/** Finds options by what people write. */
export class Names {
  readonly #plain = new Map<string, Found>();
  readonly #yaml = new Map<string, Found>();
  readonly #sections = new Set<string>();
  readonly #present: string[] = [];

  constructor(groups: readonly OptionGroup[]) {
    for (const { options } of groups) {
      for (const [name, option] of Object.entries(options)) {
        this.#present.push(name);
        this.#add(name, { name, option, alias: null });
        for (const alias of option.aliases) this.#add(alias, { name, option, alias });
      }
    }
  }

  #add(name: string, found: Found): void {
    if (this.#plain.has(plain(name))) throw new TypeError(`Two options are called ${name}.`);
    this.#plain.set(plain(name), found);
    this.#yaml.set(name.toLowerCase(), found);
    for (let colon = name.indexOf(':'); colon >= 0; colon = name.indexOf(':', colon + 1))
      this.#sections.add(name.slice(0, colon).toLowerCase());
  }

  /** By the rules of command line and environment: dashes, underscores, colons and case don't count. */
  find(written: string): Found | null {
    return this.#plain.get(plain(written)) ?? null;
  }

  /** By the rules of YAML: only case does not count. */
  findInYaml(written: string): Found | null {
    return this.#yaml.get(written.toLowerCase()) ?? null;
  }

  /** Whether nested options begin with this name. */
  isSection(written: string): boolean {
    return this.#sections.has(written.toLowerCase());
  }

  /** Why an option of the reference database is not here; null for what is none, and for what is here. */
  absence(written: string): string | null {
    return this.find(written) === null ? absenceOf(plain(written)) : null;
  }

  /**
   * ` Did you mean X?` for an option that was written as one word of a name with more, such as `LOG_DIR`; else nothing.
   */
  shorter(written: string, spelling: Spelling): string {
    const found = this.find(written.split('_', 1)[0]!);
    return found === null ? '' : ` Did you mean ${spelling(found.name)}?`;
  }

  /**
   * ` Did you mean X?` for the nearest option, why one of the reference database is not here, or nothing when none is
   * near.
   */
  suggestion(written: string, spelling: Spelling): string {
    const wanted = plain(written);
    const absence = absenceOf(wanted);
    if (absence !== null) return ` EventStoreDB has this option, but Skua does not: ${absence}.`;
    let best: string | null = null;
    let bestDistance = Math.min(DISTANCE_MAX, Math.ceil(wanted.length / 3)) + 1;
    if (wanted.length > NAME_LENGTH_MAX) return '';
    for (const name of this.#present) {
      const known = plain(name);
      const distance = wanted.length > 2 && known.startsWith(wanted) ? 1 : editDistance(wanted, known);
      if (distance < bestDistance) {
        best = name;
        bestDistance = distance;
      }
    }
    return best === null ? '' : ` Did you mean ${spelling(best)}?`;
  }
}

/** Suggestions further away than this are noise. */
const DISTANCE_MAX = 5;
/** A longer name than this is not taken for a misspelt option. */
const NAME_LENGTH_MAX = 100;
