import { encodeSetting, SETTING_STREAM, SETTING_TYPE } from '../../../core/attributes/format/setting.ts';
import { encodeText } from '../../../core/base/text.ts';
import { ANY, type AppendCondition } from '../../../core/streams/api.ts';
import { ConditionsModel, type ModelRules, randomCondition } from '../../streams/conditions-model.ts';
import type { Judge } from './judge.ts';
import type { Request } from './requests.ts';
import { KEPT, LIMITED, type TrueRecord } from './truth.ts';
import type { World } from './world.ts';

/** A client appends on a condition; the first one switches the index of tags on. */
export function newDecision(world: World): Request {
  const { random, judge } = world;
  const rest = { what: 'append', expected: ANY, token: null } as const;
  if (!judge.truth.streams.has(SETTING_STREAM)) {
    const data = encodeSetting({ names: true, correlations: false, tags: true });
    const event = { id: world.newId(), type: SETTING_TYPE, isJson: true, data, metadata: new Uint8Array(0) };
    return { ...rest, stream: SETTING_STREAM, events: [event] };
  }
  const tags = Array.from({ length: random.int(0, 3) }, () => `t${random.int(0, 4)}`);
  const event = {
    id: world.newId(),
    type: `type-${random.int(0, 3)}`,
    isJson: false,
    data: new Uint8Array(10).fill(46),
    metadata: encodeText(JSON.stringify({ $tags: tags })),
  };
  const after = random.chance(0.15) ? undefined : judge.conditions.model.positionBefore(random);
  return {
    ...rest,
    stream: random.pick(random.chance(0.5) ? KEPT : LIMITED),
    events: [event],
    condition: randomCondition(random, after),
  };
}

/** Knows all conditions that were asked for, and judges what was committed and what was refused by the whole log. */
export class ConditionJudge {
  readonly model: ConditionsModel;
  readonly #judge: Judge;
  /** By the id of the event that is written on them. */
  readonly #asked = new Map<string, AppendCondition>();

  constructor(judge: Judge) {
    this.#judge = judge;
    const { truth } = judge;
    // Some member's scavenge may have removed, or emptied, what metadata that are written later let count again.
    this.model = new ConditionsModel((position) => truth.doomed().has(position) || truth.emptied().has(position));
  }

  asks(id: string, condition: AppendCondition): void {
    this.#asked.set(id, condition);
  }

  /** A record that was committed: nothing that it excludes may stand before it. */
  committed({ id, position, prepare }: TrueRecord): void {
    if (prepare === null) return;
    const condition = this.#asked.get(id);
    if (condition !== undefined) {
      this.#judge.count('conditional');
      const violation = this.model.violation(condition, position);
      if (violation !== null)
        this.#judge.problem(
          `the event ${id} was written at ${position} though ${violation} matches ${JSON.stringify(condition)}`,
        );
    }
    const { stream, number, type, tags, data } = prepare;
    const rules = stream.startsWith('$$') ? (JSON.parse(data) as ModelRules) : null;
    this.model.add({ id, position, stream, number, type, tags, rules });
  }

  /** Somebody was told that an event of the log stands against the request, made when the log had `before` commits. */
  refused(who: string, id: string, position: number, before: number): void {
    const judge = this.#judge;
    const condition = this.#asked.get(id)!;
    const from = judge.truth.commits[before - 1]?.end ?? 0;
    const to = judge.truth.end;
    judge.count('conditionFailed');
    const wrong = this.model.wrongRefusal(condition, position, from, to);
    if (wrong !== null) judge.problem(`${who} refused ${id} on ${JSON.stringify(condition)}, and ${wrong}`);
    if (this.model.isMatchThroughout(condition, id, from, to) && position >= this.model.positionOf(id)!)
      judge.problem(`${who} refused ${id} by the event at ${position}, and it is in the log: it was a repeat`);
  }
}
