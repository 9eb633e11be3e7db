/**
 * An expression for a page that is looked at: what is wrong with how it is laid out, of what a program can see and axe
 * does not look at. In a dialog that is open, else in the whole page.
 */
export const LAYOUT_FAULTS = `(() => {
  const PHONE = 480, TARGET = 24;
  const faults = new Set();
  const say = (what, element) => faults.add(what + ': <' + element.tagName.toLowerCase() + ' class="' + element.className + '"> ' + element.textContent.trim().slice(0, 80));
  const root = document.querySelector('dialog[open]') ?? document.body;
  const width = document.documentElement.clientWidth;
  const isSeen = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.closest('.hidden-visually, .skip, svg') === null && element.getBoundingClientRect().width > 1;
  const seen = [...root.querySelectorAll('*')].filter(isSeen);
  const scrolls = (element) => element !== null && (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));

  // Beyond the window, where nobody can scroll to it.
  for (const element of seen) {
    const { left, right } = element.getBoundingClientRect();
    if (element.matches('a, button, input, select, textarea, p, li, h1, h2') && (left < -1 || right > width + 1) && !scrolls(element)) say('beyond the window', element);
  }

  // Beyond the card or the dialog that it stands in.
  for (const element of seen) {
    const around = element.matches('a, button, input, select, textarea') && !scrolls(element) ? element.closest('.card, dialog') : null;
    if (around === null || element.closest('[popover]') !== null) continue;
    const [inner, outer] = [element.getBoundingClientRect(), around.getBoundingClientRect()];
    if (inner.left < outer.left - 1 || inner.right > outer.right + 1) say('beyond its card', element);
  }

  // A table that scrolls sideways hides columns that nobody looks for.
  for (const element of seen)
    if (element.matches('.table-scroller') && element.scrollWidth > element.clientWidth + 1) say('wider than its place', element);

  // Cut, and nowhere to be read whole. A line of the log opens.
  for (const element of seen) {
    const { textOverflow, webkitLineClamp, overflowX } = getComputedStyle(element);
    const isCut = webkitLineClamp === 'none'
      ? textOverflow === 'ellipsis' && overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1
      : element.scrollHeight > element.clientHeight + 2;
    if (isCut && !element.matches('input, select, textarea, .log-message') && element.closest('[title]') === null && element.querySelector('[title]') === null) say('cut, without a title', element);
  }

  // A tile that hides what it has no room for.
  for (const element of seen)
    if (element.matches('.stat') && element.scrollWidth > element.clientWidth + 1) say('cut by its tile', element);

  // A chosen option has no title, and its arrow takes some 20 px; so does what clears a search field.
  for (const element of seen) {
    const isSearch = element.matches('input[type=search]');
    if (element.tagName !== 'SELECT' && !isSearch) continue;
    const { fontSize, fontFamily, paddingLeft } = getComputedStyle(element);
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = fontSize + ' ' + fontFamily;
    const text = isSearch ? element.placeholder : element.selectedOptions[0]?.label ?? '';
    if (pen.measureText(text).width > element.clientWidth - parseFloat(paddingLeft) - 20) say('cut: ' + text, element);
  }

  // An icon gives way to no text.
  for (const element of seen)
    if (element.matches('.button.bare') && element.clientWidth < element.clientHeight - 1) say('squeezed', element);

  // What no sentence means to say.
  for (const element of seen)
    if ([...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && /\\bNaN\\b|\\bundefined\\b|Invalid Date|\\[object /.test(node.data)) && element.closest('pre, code, .json, .log') === null) say('not a text', element);

  // As high as each other, where they stand side by side.
  for (const row of seen.filter((element) => element.matches('.toolbar, .card-actions, .form-buttons'))) {
    const controls = [...row.children].filter((element) => element.matches('.button, .choice, .segments, .search, select, input:not([type=checkbox])')).map((element) => element.getBoundingClientRect());
    for (const [i, one] of controls.entries())
      if (i > 0 && Math.abs(one.top - controls[i - 1].top) < 12 && Math.abs(one.height - controls[i - 1].height) > 1) say('controls of unequal height', row);
  }

  // Too small for a thumb that could hit another one instead.
  const targets = width > PHONE ? [] : seen.filter((element) => element.matches('a[href], button, select, summary, input, textarea') && !(element.tagName === 'A' && getComputedStyle(element).display === 'inline'));
  const boxes = targets.map((element) => (element.closest('label') ?? element).getBoundingClientRect());
  const isSmall = ({ width, height }) => Math.min(width, height) < TARGET - 0.5;
  for (const [i, box] of boxes.entries()) {
    if (!isSmall(box)) continue;
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const isNear = (other) => {
      const [left, top, right, bottom, far] = isSmall(other)
        ? [other.left + other.width / 2, other.top + other.height / 2, other.left + other.width / 2, other.top + other.height / 2, TARGET]
        : [other.left, other.top, other.right, other.bottom, TARGET / 2];
      return Math.hypot(Math.max(left - x, x - right, 0), Math.max(top - y, y - bottom, 0)) < far - 0.5;
    };
    if (boxes.some((other, j) => j !== i && !targets[j].contains(targets[i]) && !targets[i].contains(targets[j]) && isNear(other))) say('a target of less than 24 px beside another', targets[i]);
  }
  return [...faults];
})()`;
