/** The movies that the page shows. */
const MOVIES = [
  { id: 1, title: 'Metropolis', genre: 'Science fiction', year: 1927 },
  { id: 2, title: 'The General', genre: 'Comedy', year: 1926 },
  { id: 3, title: 'Nosferatu', genre: 'Horror', year: 1922 },
  { id: 4, title: 'Sunrise', genre: 'Drama', year: 1927 },
  { id: 5, title: 'City Lights', genre: 'Comedy', year: 1931 },
  { id: 6, title: 'A Trip to the Moon', genre: 'Science fiction', year: 1902 },
];

export default MOVIES;
