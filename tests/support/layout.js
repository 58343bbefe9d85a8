// Measures the layout of a page. It returns what is wrong with it, and the sizes that pages compare.
([target, finger, apart, isPhone, cut]) => {
  const faults = [];
  const name = one => `${one.localName}${one.className && typeof one.className === 'string'
    ? '.' + one.className.trim().replaceAll(/\\s+/g, '.') : ''} "${(one.textContent || one.value || '').trim().slice(0, 40)}"`;
  const root = document.scrollingElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`the page is ${root.scrollWidth - root.clientWidth} px too wide`);
  const scrolls = one => ['auto', 'scroll'].includes(getComputedStyle(one).overflowX);
  const inside = (one, test) => { for (let up = one.parentElement; up; up = up.parentElement) if (test(up)) return true; return false; };
  const isText = node => node.nodeType === Node.TEXT_NODE && node.data.trim();
  let longest = 0;
  for (const one of document.querySelectorAll('body *')) {
    if (!one.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) || one.closest(cut)) continue;
    const box = one.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const style = getComputedStyle(one);
    if ((box.right > innerWidth + 1 || box.left < -1) && !inside(one, scrolls) && !one.closest('svg'))
      faults.push(`outside of the window: ${name(one)}`);
    // Others of a row that scrolls may be cut, but not the one that says where the reader is.
    if (one.matches('[aria-current]') && inside(one, up => scrolls(up) && up.getBoundingClientRect().right < box.right - 1))
      faults.push(`the current one is cut: ${name(one)}`);
    const hides = [style.overflowX, style.overflowY].includes('hidden') && [...one.childNodes].some(isText);
    if (hides && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 3))
      faults.push(`cut: ${name(one)}`);
    const isField = ['INPUT', 'SELECT', 'TEXTAREA'].includes(one.tagName);
    if (one.matches('a[href], button, summary') || (isField && one.type !== 'hidden')) {
      // A link among words has the height of its line (the exception Inline of 2.5.8).
      const amongWords = style.display === 'inline' && [...one.parentElement.childNodes].some(isText);
      const label = isField && one.closest('label, .field.flag');
      const size = label ? label.getBoundingClientRect() : box;
      const least = Math.min(size.width, size.height);
      if (!amongWords && least < target - 0.5) faults.push(`only ${least.toFixed(1)} px: ${name(one)}`);
      const isPressed = one.matches('button:not(.plain), summary, .primary, input, select, textarea, .bar a, .views a, .pager a');
      if (isPhone && isPressed && !label && size.height < finger - 0.5 && !one.closest('.body, .outline, .whole, .numbers'))
        faults.push(`only ${size.height.toFixed(1)} px on a phone: ${name(one)}`);
    }
    // The lines of running text.
    if (one.matches('p, li, dd, blockquote') && !one.closest('pre, .edit-links, .forms, .contents') && !one.matches('.meta, .tags, .count')) {
      const range = document.createRange();
      for (const node of one.childNodes) {
        if (!isText(node) || node.data.trim().length < 60) continue;
        let top = null, length = 0;
        for (let place = 0; place < Math.min(node.data.length, 600); place += 1) {
          range.setStart(node, place);
          range.setEnd(node, place + 1);
          const [rect] = range.getClientRects();
          if (!rect) continue;
          if (top === null || Math.abs(rect.top - top) > 4) { top = rect.top; length = 0; }
          length += 1;
          longest = Math.max(longest, length);
        }
      }
    }
  }
  // What has a ground or a border of its own touches nothing of that kind.
  const boxes = [...document.querySelectorAll('button, .primary, summary, .badge, .filter, .entry, .sheet, .notice, .failure, input, select, textarea')]
    .filter(one => one.checkVisibility({ visibilityProperty: true }) && !one.closest(cut) && !one.closest('.bar, dialog, .body'))
    .filter(one => { const style = getComputedStyle(one); return style.borderTopWidth !== '0px' || style.backgroundColor !== 'rgba(0, 0, 0, 0)'; })
    .map(one => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width && box.height);
  for (const [place, [one, box]] of boxes.entries()) for (const [other, next] of boxes.slice(place + 1)) {
    // A menu that is open covers what is below it.
    if (one.contains(other) || other.contains(one) || one.closest('.offers') !== other.closest('.offers')) continue;
    const across = Math.max(box.left, next.left) - Math.min(box.right, next.right);
    const down = Math.max(box.top, next.top) - Math.min(box.bottom, next.bottom);
    if (Math.max(across, down) < apart) faults.push(`${Math.max(across, down).toFixed(1)} px between ${name(one)} and ${name(other)}`);
  }
  const bar = document.querySelector('.bar');
  // A frame in a page of another site has none.
  if (!bar) return { faults, longest, bar: [], main: 0 };
  const box = bar.getBoundingClientRect();
  const places = [...bar.children].filter(one => one.checkVisibility()).map(one => one.getBoundingClientRect());
  return {
    faults, longest,
    bar: [box.width, box.height, Math.min(...places.map(one => one.left)), Math.max(...places.map(one => one.right))],
    main: document.querySelector('main').getBoundingClientRect().width,
  };
}
