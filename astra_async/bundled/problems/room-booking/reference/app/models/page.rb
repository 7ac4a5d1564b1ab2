# One page of many records, as the parameters `page` and `per_page` ask for it.
class Page
  PER_PAGE = 10
  MAXIMUM = 50

  def initialize(all, params)
    @all = all
    @number = whole(params.fetch(:page, 1))
    @per_page = whole(params.fetch(:per_page, PER_PAGE))
    @per_page = [@per_page, MAXIMUM].min if @per_page
  end

  def valid?
    @number.present? && @per_page.present?
  end

  def records
    @all.limit(@per_page).offset((@number - 1) * @per_page)
  end

  def about
    total = @all.count
    { page: @number, per_page: @per_page, total: total, pages: (total.to_f / @per_page).ceil }
  end

  private

  # The number, or nil where there is no whole number from 1.
  def whole(value)
    value.to_s.match?(/\A[1-9][0-9]*\z/) ? value.to_i : nil
  end
end
