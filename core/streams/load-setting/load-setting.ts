import type { AttributeSetting } from '../../attributes/api.ts';
import {
  decodeSetting,
  SETTING_STREAM,
  SETTING_TYPE,
  SETTINGS_LOOKED_AT_MAX,
} from '../../attributes/format/setting.ts';
import { SkuaError } from '../../base/errors.ts';
import { HIT, untilHit } from '../../base/step.ts';
import { TOMBSTONE } from '../../log/format/records.ts';
import type { NewEvent } from '../api.ts';
import { isMetastream, originalOf } from '../format/names.ts';
import { shownData } from '../format/retention.ts';
import { FloorSearch, type Lookup, StreamKey } from '../lookup/lookup.ts';

/** The newest setting of attribute indexes; null where the log has none. */
export async function loadSetting(lookup: Lookup): Promise<AttributeSetting | null> {
  const key = new StreamKey(SETTING_STREAM, lookup.index.hasher);
  let version = TOMBSTONE - 1;
  for (let looked = 0; looked < SETTINGS_LOOKED_AT_MAX && version >= 0; looked++) {
    const search = new FloorSearch(key, version);
    const read: { setting: AttributeSetting | null } = { setting: null };
    const outcome = await untilHit(() => {
      const step = search.step(lookup);
      // The frame is valid only until another step is taken.
      if (step === HIT) read.setting = decodeSetting(shownData(lookup.frame, lookup.fields));
      return step;
    });
    if (outcome !== HIT || read.setting !== null) return read.setting;
    version = search.entry.version - 1;
  }
  return null;
}

/** Why events must not be appended where the setting is, or where metadata would say how long it stays. */
export function checkAttributeSetting(stream: string, events: readonly NewEvent[]): SkuaError | null {
  if (stream !== SETTING_STREAM)
    return isMetastream(stream) && originalOf(stream) === SETTING_STREAM ? settingStays(stream) : null;
  for (const { type, isJson, data } of events)
    if (type !== SETTING_TYPE || !isJson || decodeSetting(data) === null)
      return new SkuaError(
        'bad_request',
        `Only settings of attribute indexes are appended to ${SETTING_STREAM}: use POST /admin/indexes, or skua indexes set.`,
        { stream },
      );
  return null;
}

/** All members, functions and ticks go by its newest event. */
export function settingStays(stream: string): SkuaError {
  return new SkuaError(
    'access_denied',
    `${SETTING_STREAM} says which indexes the log has, and is neither deleted nor truncated: leave ${stream} as it is.`,
    { stream },
  );
}
