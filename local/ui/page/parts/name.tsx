import type { ComponentChildren } from 'preact';

/**
 * What has no shape of its own, or changes the direction of what stands around it: a name made of it would pass for
 * another one. Between pictures U+200D makes one of them.
 */
const UNSEEN =
  /[\p{Cc}\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|(?<![\p{Extended_Pictographic}\ufe0f\p{Emoji_Modifier}])\u200d/gu;
const LONGEST = 200;
/** Where a name may go on in another line: behind a separator, and between the words of a name like `OrderPlaced`. */
const JOINT = /(?<=[\p{L}\p{N}][\p{P}\p{S}]{1,3})(?=[\p{L}\p{N}])|(?<=\p{Ll})(?=\p{Lu})/u;

/**
 * A name that a client has chosen, isolated: nothing of it changes how the text around it is read, and what can't be
 * seen stands there by its number. Where it is too long for a line it is broken between its words.
 */
export function Name({ text, isWhole = false }: { readonly text: string; readonly isWhole?: boolean }) {
  const isCut = !isWhole && text.length > LONGEST;
  const shown = isCut ? `${text.slice(0, LONGEST)}…` : text;
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const { 0: unseen, index } of shown.matchAll(UNSEEN)) {
    parts.push(
      ...breakable(shown.slice(from, index)),
      <span
        key={index}
        class="unseen"
      >{`U+${unseen.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`}</span>,
    );
    from = index + unseen.length;
  }
  parts.push(...breakable(shown.slice(from)));
  return <bdi title={isCut ? text : undefined}>{parts}</bdi>;
}

/** A name, or an address, with the places where a line may end. */
export function breakable(text: string): readonly ComponentChildren[] {
  return text.split(JOINT).flatMap((word, i) => (i === 0 ? [word] : [<wbr />, word]));
}
