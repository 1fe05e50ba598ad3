// What the tests of pages measure in a browser. The function runs in the page, so it refers to nothing outside of itself.

/** Elements that are wider than the page, and texts with a contrast below 4.5 (WCAG 2.2, 1.4.3). */
export function measure() {
  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const background = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(parse(element.closest("svg") ? style.fill : style.color)), luminance(background(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) weak.push(`${contrast.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  return {
    title: document.title,
    heading: document.querySelector("h1")?.textContent,
    text: document.body.innerText,
    scripts: document.scripts.length,
    scrollWidth: document.documentElement.scrollWidth,
    weak,
  };
}
